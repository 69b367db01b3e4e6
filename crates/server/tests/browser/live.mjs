// Keeps a page of the inspector open while answers come and the server is restarted: `node live.mjs BASE CHROMIUM`.
//
// It prints `restart` when the server is to be restarted, and reads a line once that has happened. What is wrong is printed, a line
// each, as `fault …`.

import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [base, executablePath] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const ID = "live";
const PAGE = `/ui/c/${ID}`;

const fault = (what) => console.log(`fault ${what}`);

/** Asks a model through the server; returns the text of the answer. */
async function ask(messages, stream) {
  const answer = await fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-contexture-conversation": ID, "x-contexture-wait": "ingest" },
    body: JSON.stringify({ model: "gpt-4.1", messages, stream }),
  });
  const text = await answer.text();
  if (!stream) return JSON.parse(text).choices[0].message.content;
  const events = text.split("\n").filter((line) => line.startsWith("data: {"));
  return events.map((line) => JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? "").join("");
}

/** Where the first message stands, and how far the page is scrolled: neither may move by itself. */
const placeOf = (page) => page.evaluate(() => [document.querySelector(".message")?.getBoundingClientRect().top, scrollY]);

/** Opens what the page says is new, and compares its figures with the API's. */
async function showNews(page, what) {
  await page.locator(".news a").click();
  await page.waitForFunction(() => !document.querySelector(".news"));
  const usage = (await (await fetch(`${base}/api/v1/conversations/${ID}`)).json()).overview.usage;
  const shown = await page.$$eval(".figures data", (figures) => figures.map((figure) => figure.getAttribute("value")));
  for (const name of ["calls", "input_tokens", "output_tokens", "dollars"]) {
    if (!shown.includes(String(usage[name]))) fault(`${what}: ${name} is ${usage[name]}, and the page has ${shown}`);
  }
}

/** Streams an answer to a page that is open, and waits until it is there. */
async function streamTo(page, messages, what) {
  const before = await placeOf(page);
  const text = await ask(messages, true);
  await page.waitForFunction((expected) => document.querySelector(".live-answer")?.textContent === expected, text);
  const after = await placeOf(page);
  if (JSON.stringify(before) !== JSON.stringify(after)) fault(`${what}: the page moved from ${before} to ${after}`);
  await page.locator(".news a").waitFor();
  return { role: "assistant", content: text };
}

const says = (content) => ({ role: "user", content });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const history = [says("Where is my parcel?")];
  history.push({ role: "assistant", content: await ask(history, false) });
  const page = await browser.newPage({ baseURL: base, viewport: { width: 1280, height: 900 } });
  page.on("pageerror", (error) => fault(String(error)));
  const isFollowing = () => page.waitForResponse((answer) => answer.url().includes("/events") && answer.ok());
  let following = isFollowing();
  await page.goto(PAGE);
  await following;

  history.push(says("And now?"));
  history.push(await streamTo(page, history, "an answer"));
  following = isFollowing();
  await showNews(page, "after an answer");
  await following;

  // The server goes away and comes back, and a run of an agent begins before the page has noticed.
  following = isFollowing();
  console.log("restart");
  await lines.next();
  await following;
  await page.locator(".news a").waitFor();
  following = isFollowing();
  await showNews(page, "after the restart");
  await following;
  if (!(await page.locator(".message", { hasText: "Send it." }).count())) fault("what the run was told is not on the page");
} finally {
  await browser.close();
}
process.exit(0);
