// Looks at pages of the inspector with a real browser: `node look.mjs BASE PICTURES CHROMIUM CONVERSATION PATH…`.
//
// Each path is opened in both colour schemes and three widths. What is wrong is printed, a line each, as `fault …`; what was
// measured as `measured …`. Pictures are kept in the folder PICTURES.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [base, pictures, executablePath, conversation, ...paths] = process.argv.slice(2);
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SCHEMES = ["light", "dark"];
const WIDTHS = [360, 1280, 2560];

/** The name of a page in the names of its pictures: its path without ids, and what it is asked for. */
const nameOf = (path) => {
  const [steps, query] = path.replace(/^\/ui\//, "").split("?");
  const names = steps.split("/").filter((step) => step && step.length < 20 && !step.startsWith("req_"));
  if (/^(part|q)=/.test(query ?? "")) names.push(query.split("=")[0]);
  return names.join("-") || "conversations";
};

const fault = (where, what) => console.log(`fault ${where}: ${what}`);

/** Opens a page that tells what it does that it should not. */
async function openPage(browser, options) {
  const context = await browser.newContext({ baseURL: base, ...options });
  const page = await context.newPage();
  const where = () => `${page.url()} ${JSON.stringify(options)}`;
  page.on("request", (request) => {
    if (!request.url().startsWith(base)) fault(where(), `asked for ${request.url()}`);
  });
  page.on("console", (message) => {
    if (message.type() === "error" || /Content Security Policy/.test(message.text())) fault(where(), message.text());
  });
  page.on("pageerror", (error) => fault(where(), String(error)));
  page.on("dialog", (dialog) => { fault(where(), `a dialog: ${dialog.message()}`); dialog.dismiss(); });
  return page;
}

async function checkAccessibility(page, where) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  for (const one of found.violations) {
    fault(where, `axe: ${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`);
  }
}

/** Looks at all pages in one scheme, in each width. */
async function lookAround(browser, colorScheme) {
  const page = await openPage(browser, { colorScheme, viewport: { width: 1280, height: 900 } });
  for (const path of paths) {
    await page.goto(path);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const where = `${path} ${colorScheme} ${width}`;
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) fault(where, `${wide} pixels wider than the window`);
      await page.screenshot({ path: `${pictures}/${nameOf(path)}-${colorScheme}-${width}.png`, fullPage: width !== 2560 });
      // The widest differs from the middle one in nothing but blank space.
      if (width !== 2560) await checkAccessibility(page, where);
    }
  }
  await page.context().close();
}

/** Moves through the calls of a conversation, and compares what is shown with what the server draws of the same call. */
async function moveThroughCalls(browser) {
  const page = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const path = `/ui/c/${conversation}`;
  await page.goto(path);
  // The picture of docs/inspector.md.
  await page.screenshot({ path: `${pictures}/inspector.png` });
  const slider = page.locator(".scrubber input");
  const texts = async () => [
    await page.locator("[data-position]").innerText(),
    (await page.locator("[data-summary]").innerText()).replace(/\s+/g, " ").trim(),
  ];
  const newest = await texts();
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((before) => document.querySelector("[data-position]")?.textContent !== before, newest[0]);
  const moved = await texts();
  const widths = () => page.$$eval("svg.window .part rect", (rects) => rects.map((rect) => Number.parseFloat(rect.getAttribute("width"))).filter((width) => width > 0));
  const drawn = await widths();
  await page.reload();
  if (JSON.stringify(await texts()) !== JSON.stringify(moved)) fault(path, `the module says ${moved}, the server ${await texts()}`);
  const expected = await widths();
  if (drawn.length !== expected.length || drawn.some((width, at) => Math.abs(width - expected[at]) > 0.01)) {
    fault(path, `the module draws ${drawn}, the server ${expected}`);
  }
  await page.goto(path);
  await page.locator(".scrubber input").focus();
  const rate = await page.evaluate(async () => {
    const input = document.querySelector(".scrubber input");
    const most = Number(input.max);
    const start = performance.now();
    const moves = 120;
    for (let at = 0; at < moves; at += 1) {
      input.value = String(1 + (at % most));
      input.dispatchEvent(new Event("input"));
      await new Promise(requestAnimationFrame);
    }
    return (moves * 1000) / (performance.now() - start);
  });
  console.log(`measured calls_a_second ${rate.toFixed(1)}`);
  await page.context().close();
}

/** Opens a part of the window with a click on its picture, as it was drawn and after it was moved. */
async function openPart(browser) {
  const page = await openPage(browser, { viewport: { width: 1280, height: 900 } });
  const path = `/ui/c/${conversation}`;
  await page.goto(path);
  for (const moved of [false, true]) {
    if (moved) {
      const before = await page.locator("[data-position]").innerText();
      await page.locator(".scrubber input").focus();
      await page.keyboard.press("ArrowLeft");
      await page.waitForFunction((text) => document.querySelector("[data-position]")?.textContent !== text, before);
    }
    // The widest part, in whose middle nothing else is drawn.
    const rects = await page.$$eval(".window-of-call > .picture .part rect", (rects) => rects.map((rect) => rect.getBoundingClientRect().width));
    const widest = page.locator(".window-of-call > .picture .part rect").nth(rects.indexOf(Math.max(...rects)));
    await widest.click({ force: true });
    await page.waitForURL(/[?&]part=\d+/);
    const part = new URL(page.url()).searchParams.get("part");
    const heading = await page.locator("#chosen").innerText();
    if (!heading.startsWith(`Part ${part}:`)) fault(path, `a click on part ${part} shows ${heading}`);
  }
  await page.context().close();
}

/** Reads a thread as somebody does who has neither scripts nor a mouse. */
async function readWithoutScripts(browser) {
  const page = await openPage(browser, { javaScriptEnabled: false });
  const path = `/ui/c/${conversation}`;
  await page.goto(path);
  await page.keyboard.press("Tab");
  if (!(await page.locator(".skip").evaluate((skip) => skip.matches(":focus")))) fault(path, "the first stop is not the link to the content");
  const before = await page.locator("[data-position]").innerText();
  await page.locator('[data-step="prev"]').click();
  if ((await page.locator("[data-position]").innerText()) === before) fault(path, "the link to the call before leads nowhere");
  if ((await page.locator("svg.window .part").count()) === 0) fault(path, "no picture without scripts");
  await page.context().close();
}

/** Questions that people come with, each answered from the first page with at most four clicks. */
const TASKS = {
  "why did this output vanish?": async (page, click) => {
    await click(page.locator(`a.name[href$="${conversation}"]`));
    await click(page.locator("[data-left-out] .part rect").first());
    return page.locator("#part", { hasText: "left out" }).locator(".pieces li").first();
  },
  "where did the cache break, and what did it cost?": async (page, click) => {
    await click(page.getByRole("link", { name: "Money" }));
    return page.getByRole("region", { name: "Dearest breaks" }).locator("tbody tr").first();
  },
  "what would a window of 32k change?": async (page, click) => {
    await click(page.locator(`a.name[href$="${conversation}"]`));
    await page.getByLabel("What if the window were").fill("32k");
    await click(page.getByRole("button", { name: "Try" }));
    return page.getByRole("region", { name: "Both in figures" });
  },
  "who may approve this?": async (page, click) => {
    await click(page.getByRole("link", { name: "Runs", exact: true }));
    return page.locator(".urgent", { hasText: "You may decide" });
  },
  // The last one: it changes the tree.
  "go back to before the wrong tool call": async (page, click) => {
    await click(page.locator(`a.name[href$="${conversation}"]`));
    await click(page.locator(".log .menu summary").nth(2));
    await click(page.locator(".log .menu[open]").getByRole("button", { name: "Go back to here" }));
    await page.waitForURL(/[?&]branch=/);
    return page.locator(".tag", { hasText: new URL(page.url()).searchParams.get("branch") }).first();
  },
};

async function doTasks(browser) {
  for (const [task, work] of Object.entries(TASKS)) {
    const page = await openPage(browser, { viewport: { width: 1280, height: 900 } });
    await page.goto("/ui/");
    let clicks = 0;
    const click = async (what) => {
      clicks += 1;
      await what.click();
    };
    const shown = await work(page, click);
    await shown.waitFor({ state: "visible", timeout: 10_000 }).catch(() => fault(task, "the answer is not on the page"));
    if (clicks > 4) fault(task, `${clicks} clicks`);
    await page.context().close();
  }
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  for (const scheme of SCHEMES) await lookAround(browser, scheme);
  await moveThroughCalls(browser);
  await openPart(browser);
  await readWithoutScripts(browser);
  await doTasks(browser);
} finally {
  await browser.close();
}
