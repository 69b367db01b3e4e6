// Measures pages of the inspector: `node speed.mjs BASE CHROMIUM LARGE CALLS`. LARGE is a conversation of many messages, CALLS one
// of many calls. Each figure is printed as `measured NAME VALUE`.

import { chromium } from "playwright-core";

const [base, executablePath, large, many] = process.argv.slice(2);
const measured = (name, value) => console.log(`measured ${name} ${value}`);
const median = (values) => [...values].sort((one, two) => one - two)[values.length >> 1];

/** Milliseconds until a page shows something, and the bytes that came over the wire for it, with an empty cache. */
async function openFirst(browser, path) {
  const context = await browser.newContext({ baseURL: base, viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(path);
  const first = await page.evaluate(() => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
    const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    // Not what is loaded later, and not the stream that stays open.
    const files = loaded.filter((entry) => !/events|bands/.test(entry.name));
    return { paint, bytes: files.reduce((sum, entry) => sum + entry.transferSize, 0) };
  });
  await context.close();
  return first;
}

async function scrub(browser) {
  const page = await browser.newPage({ baseURL: base, viewport: { width: 1280, height: 900 } });
  await page.goto(`/ui/c/${many}`);
  const scrubbed = await page.evaluate(async () => {
    const input = document.querySelector(".scrubber input");
    const most = Number(input.max);
    // All blocks are loaded first: what is measured is how fast a picture follows the hand.
    input.value = "1";
    input.dispatchEvent(new Event("input"));
    await new Promise((done) => {
      const look = () => (document.querySelector("[data-position]").textContent.startsWith("call 1 ") ? done() : requestAnimationFrame(look));
      look();
    });
    const start = performance.now();
    const moves = 300;
    for (let at = 0; at < moves; at += 1) {
      input.value = String(1 + ((at * 37) % most));
      input.dispatchEvent(new Event("input"));
      await new Promise(requestAnimationFrame);
    }
    return { most, rate: (moves * 1000) / (performance.now() - start) };
  });
  measured("calls_of_the_slider", scrubbed.most);
  measured("calls_a_second", scrubbed.rate.toFixed(1));
  await page.close();
}

/** Scrolls a page from top to bottom, and counts frames that took longer than two. */
async function scroll(browser) {
  const page = await browser.newPage({ baseURL: base, viewport: { width: 1280, height: 900 } });
  await page.goto(`/ui/c/${large}`);
  const frames = await page.evaluate(async () => {
    const times = [];
    let before = await new Promise(requestAnimationFrame);
    for (let step = 1; step <= 120; step += 1) {
      scrollTo(0, ((document.body.scrollHeight - innerHeight) * step) / 120);
      const now = await new Promise(requestAnimationFrame);
      times.push(now - before);
      before = now;
    }
    return { dropped: times.filter((time) => time > 34).length, longest: Math.max(...times) };
  });
  measured("scroll_frames_dropped_of_120", frames.dropped);
  measured("scroll_longest_frame_ms", frames.longest.toFixed(1));
  await page.close();
}

/** Lets answers come to a page that stays open, and compares the memory of the tab before and after. */
async function stayOpen(browser) {
  const ask = async (content) => {
    const answer = await fetch(`${base}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-contexture-conversation": "live", "x-contexture-wait": "ingest" },
      body: JSON.stringify({ model: "gpt-4.1", messages: [{ role: "user", content }], stream: true }),
    });
    await answer.text();
  };
  await ask("begin");
  const page = await browser.newPage({ baseURL: base, viewport: { width: 1280, height: 900 } });
  const following = page.waitForResponse((answer) => answer.url().includes("/events"));
  await page.goto("/ui/c/live");
  await following;
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const heap = async () => {
    await session.send("HeapProfiler.collectGarbage");
    const { metrics } = await session.send("Performance.getMetrics");
    const of = (name) => metrics.find((one) => one.name === name).value;
    return { bytes: of("JSHeapUsedSize"), nodes: of("Nodes") };
  };
  const answers = 300;
  for (let at = 0; at < 20; at += 1) await ask(`warm ${at}`);
  const before = await heap();
  for (let at = 0; at < answers; at += 1) await ask(`answer ${at}`);
  const after = await heap();
  measured("live_answers", answers);
  measured("live_heap_kib_before_after", `${(before.bytes / 1024).toFixed(0)} ${(after.bytes / 1024).toFixed(0)}`);
  measured("live_nodes_before_after", `${before.nodes} ${after.nodes}`);
  await page.close();
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const firsts = [];
  for (let at = 0; at < 5; at += 1) firsts.push(await openFirst(browser, `/ui/c/${large}`));
  measured("first_picture_ms_median_of_5", median(firsts.map((first) => first.paint)).toFixed(0));
  measured("first_page_bytes", firsts[0].bytes);
  await scrub(browser);
  await scroll(browser);
  await stayOpen(browser);
} finally {
  await browser.close();
}
