// @ts-check
// What pages gain where scripts run: moving through the calls of a conversation without loading a page, and copying.
// Everything here is to be had without: by links, and by selecting a text.

/**
 * @typedef {{limit: number, tokens: number, read: number, written: number, omitted: number, break: string | null,
 *   stored: boolean, parts: [string, number, number][]}} CallWindow
 * @typedef {{id: string, at: string, model: string, outcome: string, cost: string | null, window: CallWindow | null}} Call
 * @typedef {{calls: Call[], next: string | null}} Block
 * @typedef {[kind: string, tokens: number, number: number]} Part
 */

const SVG = "http://www.w3.org/2000/svg";
const figures = new Intl.NumberFormat("en-US");

/** @param {ParentNode} root @param {string} selector @returns {HTMLElement | null} */
const find = (root, selector) => root.querySelector(selector);

/** Buttons that copy a text. They are hidden until here, since without a script they would do nothing. */
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!(button instanceof HTMLButtonElement) || !navigator.clipboard) continue;
  button.hidden = false;
  const name = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy ?? "");
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 1500);
  });
}

/** The calls of a branch, the newest first, of which blocks are loaded as they are looked at. */
class Calls {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
    /** @type {Call[]} */
    this.loaded = [];
    /** Where the next block begins: empty for the first one, null after the last. @type {string | null} */
    this.next = "";
    /** @type {Promise<void> | null} */
    this.loading = null;
  }

  /** Loads blocks until the call of an index is there. @param {number} index */
  async load(index) {
    while (this.loaded.length <= index && this.next !== null) {
      this.loading ??= this.loadBlock().finally(() => { this.loading = null; });
      await this.loading;
    }
    return this.loaded[index];
  }

  async loadBlock() {
    const source = new URL(this.source, location.href);
    if (this.next) source.searchParams.set("after", this.next);
    const answer = await fetch(source, { headers: { accept: "application/json" } });
    if (answer.status === 401) throw new Error("You have been signed out. Load the page again to sign in.");
    if (!answer.ok) throw new Error(`the calls could not be loaded: ${answer.status}`);
    /** @type {Block} */
    const block = await answer.json();
    this.loaded.push(...block.calls);
    this.next = block.next;
  }
}

/** Moves the parts of one picture to those of another one. */
class Picture {
  /** @param {SVGSVGElement} svg */
  constructor(svg) {
    this.svg = svg;
    this.pattern = svg.querySelector("pattern")?.id ?? "";
    /** @type {SVGRectElement[]} */
    this.rects = [];
    /** @type {Map<string, SVGElement>} */
    this.marks = new Map();
    this.group = document.createElementNS(SVG, "g");
    this.whole = 1;
    this.isOurs = false;
  }

  /** @param {Part[]} parts @param {number} whole @param {string} label */
  show(parts, whole, label) {
    if (!this.isOurs) {
      // What the server drew is replaced once; from then on rectangles are only moved.
      for (const drawn of [...this.svg.children]) {
        if (drawn.tagName !== "defs" && !drawn.classList.contains("free")) drawn.remove();
      }
      this.svg.append(this.group);
      this.isOurs = true;
    }
    this.whole = Math.max(whole, 1);
    let before = 0;
    parts.forEach(([kind, tokens, number], at) => {
      const rect = this.rect(at);
      rect.parentElement?.setAttribute("class", `part ${kind}`);
      rect.parentElement?.setAttribute("data-part", String(number));
      this.place(rect, before, tokens);
      before += tokens;
    });
    for (const spare of this.rects.slice(parts.length)) spare.setAttribute("width", "0");
    this.svg.setAttribute("aria-label", label);
  }

  /** @param {SVGElement} rect @param {number} from @param {number} tokens */
  place(rect, from, tokens) {
    const per = (/** @type {number} */ count) => `${((count * 100) / this.whole).toFixed(3)}%`;
    rect.setAttribute("x", per(from));
    rect.setAttribute("width", per(tokens));
  }

  /** @param {number} at */
  rect(at) {
    let rect = this.rects[at];
    if (!rect) {
      rect = document.createElementNS(SVG, "rect");
      rect.setAttribute("y", "18");
      rect.setAttribute("height", "40");
      const part = document.createElementNS(SVG, "g");
      part.append(rect);
      this.group.append(part);
      this.rects[at] = rect;
    }
    return rect;
  }

  /** @param {string} name @param {number} from @param {number} tokens @param {Record<string, string>} attributes */
  mark(name, from, tokens, attributes) {
    let rect = this.marks.get(name);
    if (!rect) {
      rect = document.createElementNS(SVG, "rect");
      rect.setAttribute("class", name);
      this.svg.append(rect);
      this.marks.set(name, rect);
    }
    this.place(rect, from, tokens);
    for (const [key, value] of Object.entries(attributes)) rect.setAttribute(key, value);
  }
}

/** @param {Picture} picture @param {CallWindow} shown */
function showWindow(picture, shown) {
  const parts = shown.parts.map(([kind, tokens], at) => /** @type {Part} */ ([kind, tokens, at + 1]));
  const label = `${figures.format(shown.tokens)} of ${figures.format(shown.limit)} tokens in ${parts.filter(([, tokens]) => tokens > 0).length} parts`;
  picture.show(parts, Math.max(shown.limit, shown.tokens), label);
  picture.mark("cached", 0, shown.read, { y: "18", height: "40", fill: `url(#${picture.pattern})` });
  picture.mark("written", shown.read, shown.written, { y: "60", height: "5" });
  picture.mark("broken-at", shown.read, 0, { y: "8", height: "62", width: shown.break === null ? "0" : "2" });
}

/** What the calls of a section left out, in a picture of their own. */
class LeftOut {
  /** @param {HTMLElement} section */
  constructor(section) {
    this.place = find(section, "[data-left-out]");
    let svg = this.place?.querySelector("svg");
    if (this.place && !svg) {
      svg = document.createElementNS(SVG, "svg");
      for (const [name, value] of Object.entries({ class: "window", role: "img", width: "100%", height: "64" })) svg.setAttribute(name, value);
      find(this.place, ".picture")?.append(svg);
    }
    this.picture = svg ? new Picture(svg) : null;
  }

  /** @param {CallWindow} shown */
  show(shown) {
    if (!this.place || !this.picture) return;
    this.place.hidden = shown.omitted === 0;
    const tokens = find(this.place, "[data-left-out-tokens]");
    if (tokens) tokens.textContent = figures.format(shown.omitted);
    const parts = shown.parts.map(([kind, , omitted], at) => /** @type {Part} */ ([kind, omitted, at + 1]));
    this.picture.show(parts.filter(([, omitted]) => omitted > 0), shown.omitted, `${figures.format(shown.omitted)} tokens left out`);
  }
}

/**
 * A click on a part of a picture shows its texts, as the link in the table of parts does.
 * @param {HTMLElement} section
 */
function openParts(section) {
  section.classList.add("with-parts");
  section.addEventListener("click", (event) => {
    const part = event.target instanceof Element ? event.target.closest(".part") : null;
    // What the server drew begins its name with the number of the part. One of a request that went as it came has none.
    const name = part?.getAttribute("data-part") ?? part?.querySelector("title")?.textContent ?? "";
    const number = Number.parseInt(name, 10);
    if (!(number > 0)) return;
    const there = new URL(location.href);
    there.searchParams.set("call", section.dataset.call ?? "");
    there.searchParams.set("part", String(number));
    there.hash = "part";
    location.assign(there);
  });
}

/** The window of a call, with a slider over all calls of its branch. @param {HTMLElement} section */
function scrub(section) {
  const count = Number(section.dataset.calls);
  const svg = section.querySelector("svg.window");
  if (!(count > 1) || !(svg instanceof SVGSVGElement)) return;
  const calls = new Calls(section.dataset.scrubber ?? "");
  const picture = new Picture(svg);
  const leftOut = new LeftOut(section);
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: "1", max: String(count), value: String(count) });
  slider.setAttribute("aria-label", "Call of the branch, from the first to the newest");
  const row = document.createElement("div");
  row.className = "scrubber";
  row.append("first", slider, "newest");
  find(section, ".picture")?.after(row);
  const shown = Number(find(section, "[data-position] data")?.getAttribute("value"));
  if (shown) slider.value = String(shown);

  const parts = find(section, "[data-parts]");
  let wanted = 0;
  const move = async () => {
    const position = Number(slider.value);
    wanted = position;
    const call = await calls.load(count - position);
    // Another one is wanted by now, or calls were deleted meanwhile.
    if (wanted !== position || !call) return;
    describe(section, call, position, count);
    if (call.window) {
      showWindow(picture, call.window);
      leftOut.show(call.window);
    }
    picture.svg.toggleAttribute("hidden", !call.window);
    // Tables and texts of the parts are on the page of the call: they would have to be loaded for each.
    for (const place of [parts, find(section, ".chosen")]) if (place) place.hidden = true;
  };
  slider.addEventListener("input", () => { move().catch((error) => report(section, error)); });
  for (const [rel, by] of /** @type {[string, number][]} */ ([["prev", -1], ["next", 1]])) {
    find(section, `[data-step="${rel}"]`)?.addEventListener("click", (event) => {
      event.preventDefault();
      slider.value = String(Number(slider.value) + by);
      move().catch((error) => report(section, error));
    });
  }
}

/** Says of the call that is shown what the server said of the one before. @param {HTMLElement} section @param {Call} call @param {number} position @param {number} count */
function describe(section, call, position, count) {
  const { window: shown } = call;
  const say = (/** @type {string} */ selector, /** @type {string} */ text) => {
    const place = find(section, selector);
    if (place) place.textContent = text;
    return place;
  };
  say("[data-position]", `call ${figures.format(position)} of ${figures.format(count)}`);
  say("[data-line]", [call.model, call.at.slice(0, 19).replace("T", " "), call.outcome, call.cost ?? "cost unknown"].join(" · "));
  const full = shown && shown.limit > 0 ? ` · ${Math.floor((shown.tokens * 100) / shown.limit)} % full` : "";
  const read = shown && shown.tokens > 0 ? ` · ${Math.floor((shown.read * 100) / shown.tokens)} % expected from the cache` : "";
  const left = shown && shown.omitted > 0 ? ` · ${figures.format(shown.omitted)} left out` : "";
  const of = shown?.stored ? ` of ${figures.format(shown.limit)} tokens` : " tokens, as the provider reported them";
  say("[data-summary]", shown ? figures.format(shown.tokens) + of + full + read + left : "What it was made of is not known.");
  const broken = say("[data-break]", shown?.break ?? "");
  if (broken) broken.hidden = !shown?.break;
  const open = find(section, "[data-open]");
  const path = `/ui/call/${encodeURIComponent(call.id)}`;
  if (open instanceof HTMLAnchorElement) open.href = path;
  const form = find(section, "[data-what-if]");
  if (form instanceof HTMLFormElement) {
    form.action = `${path}/what-if`;
    const more = form.querySelector("a");
    if (more) more.href = form.action;
  }
  section.dataset.call = call.id;
  const here = new URL(location.href);
  here.searchParams.set("call", call.id);
  here.searchParams.delete("part");
  // The address leads here again, and going back leads to the page before.
  history.replaceState(null, "", here);
}

/**
 * Follows what happens to a conversation. An answer that is coming is shown as it comes; of what was stored it is said that it is
 * there, and a click shows it: nothing that somebody reads moves away by itself.
 * @param {HTMLElement} section
 */
function follow(section) {
  const source = new URL(section.dataset.events ?? "", location.href);
  /** @type {EventSource | null} */
  let events = null;
  /** @type {HTMLElement | null} */
  let answer = null;
  /** @param {MessageEvent<string>} event */
  const onDelta = (event) => {
    /** @type {{kind: string, branch: string, delta?: string}} */
    const piece = JSON.parse(event.data);
    if (piece.branch !== section.dataset.branch) return;
    if (!answer) {
      answer = document.createElement("div");
      answer.className = "text live-answer";
      answer.setAttribute("aria-live", "polite");
      answer.setAttribute("dir", "auto");
      section.append(answer);
    }
    // A new beginning voids what came of the same answer before.
    if (piece.kind === "response.created") answer.textContent = "";
    answer.append(piece.delta ?? "");
  };
  /** @param {MessageEvent<string>} event */
  const onStored = (event) => {
    source.searchParams.set("after", event.lastEventId);
    announce(section);
  };
  // A browser tries again by itself where the server cannot be reached. It gives up where that refuses: the session has ended, or the
  // conversation is gone.
  const onError = () => {
    if (events?.readyState !== EventSource.CLOSED) return;
    report(section, "This page does not follow the conversation any more. Load it again to see what is there now.");
  };
  // Only while somebody looks: a browser has six connections to a server, and six tabs in the background would leave none.
  const connect = () => {
    events?.close();
    events = null;
    if (document.hidden) return;
    events = new EventSource(source);
    events.addEventListener("error", onError);
    events.addEventListener("delta", onDelta);
    for (const kind of ["appended", "branch_created", "branch_moved", "branch_activated", "node_redacted"]) {
      events.addEventListener(kind, onStored);
    }
  };
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", () => events?.close());
  connect();
}

/** Says that there is something new. @param {HTMLElement} section */
function announce(section) {
  if (find(section, ".news")) return;
  const news = document.createElement("p");
  news.className = "news";
  news.setAttribute("role", "status");
  const link = document.createElement("a");
  const newest = new URL(location.href);
  for (const name of ["call", "part", "messages", "tree"]) newest.searchParams.delete(name);
  link.href = newest.href;
  link.textContent = "Show it";
  news.append("There is something new in this conversation. ", link);
  section.append(news);
}

/** @param {HTMLElement} section @param {unknown} error */
function report(section, error) {
  let place = find(section, ".alert");
  if (!place) {
    place = document.createElement("p");
    place.className = "alert";
    place.setAttribute("role", "alert");
    section.append(place);
  }
  place.textContent = error instanceof Error ? error.message : String(error);
}

for (const section of document.querySelectorAll("[data-scrubber]")) {
  if (section instanceof HTMLElement) {
    openParts(section);
    scrub(section);
  }
}
for (const section of document.querySelectorAll("[data-events]")) {
  if (section instanceof HTMLElement) follow(section);
}
