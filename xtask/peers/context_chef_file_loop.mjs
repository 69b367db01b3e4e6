// The loop of our laws of compaction, a new file in each step, played by @context-chef/core and by a host that drops its
// oldest messages: how often a request is over the window, how often history is cut, and how much of each request the
// provider has seen at the same place in the one before.
// usage: node context_chef_file_loop.mjs <steps> <tokens of a window>…
import { ContextChef } from '@context-chef/core';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const [steps, ...windows] = process.argv.slice(2).map(Number);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

// A message is counted once: the loop asks for the same ones thousands of times.
const counts = new Map();
function tokens(message) {
  const text = JSON.stringify(message);
  let count = counts.get(text);
  if (count === undefined) counts.set(text, (count = encode(text).length));
  return count;
}
const tokenizer = (messages) => messages.reduce((sum, message) => sum + tokens(message), 0);

function readOf(step) {
  const id = `c${step}`;
  const args = JSON.stringify({ file_path: `src/module_${step}/file_${step}.rs` });
  return [
    { role: 'assistant', content: '', tool_calls: [{ id, type: 'function', function: { name: 'Read', arguments: args } }] },
    { role: 'tool', tool_call_id: id, content: `fn f${step}() {}\n`.repeat(20) },
  ];
}

// A host that does as its documentation says: what `onCompress` tells it has been replaced, it replaces in its own history.
function chef(window) {
  let replaced = 0;
  let summaries = [];
  const onCompress = (summary, count) => {
    replaced += count - summaries.length;
    summaries = summary ? [summary] : [];
  };
  const janitor = { tokenizer, logger: quiet, contextWindow: window, onCompress };
  const chef = new ContextChef({ logger: quiet, janitor });
  chef.setSystemPrompt([]);
  return async (history) => {
    chef.setHistory([...summaries, ...history.slice(replaced)]);
    return (await chef.compile({ target: 'openai' })).messages;
  };
}

// Keeps the task, and of the rest as many of the newest messages as fit; never the output of a call that it dropped.
function sliding(window) {
  return async (history) => {
    let room = window - tokens(history[0]);
    let from = history.length;
    while (from > 1 && room >= tokens(history[from - 1])) room -= tokens(history[--from]);
    while (history[from]?.role === 'tool') from += 1;
    return [history[0], ...history.slice(from)];
  };
}

async function play(window, view) {
  const history = [{ role: 'user', content: 'Read the files.' }];
  let [before, over, cuts, reused, resent, shortest] = ['', 0, 0, 0, 0, Infinity];
  for (let step = 0; step < steps; step++) {
    history.push(...readOf(step));
    const messages = await view(history.slice());
    if (tokenizer(messages) > window) over += 1;
    shortest = Math.min(shortest, messages.length);
    const now = JSON.stringify(messages);
    let same = 0;
    while (same < now.length && now[same] === before[same]) same += 1;
    if (step > 0) {
      reused += same / now.length;
      resent += Math.min(same + 2, before.length) / before.length;
      if (same + 2 < before.length) cuts += 1;
    }
    before = now;
    history.push({ role: 'assistant', content: `ok ${step}` }, { role: 'user', content: 'go on' });
  }
  const mean = (sum) => (sum / (steps - 1)).toFixed(3);
  const rate = ((cuts * 1000) / steps).toFixed(1);
  return `${over} over the window, ${rate} cuts per 1,000 steps, resent ${mean(resent)}, reused ${mean(reused)}, at least ${shortest} messages`;
}

for (const window of windows) {
  console.log(`${window} @context-chef/core: ${steps} steps: ${await play(window, chef(window))}`);
  console.log(`${window} oldest messages dropped: ${steps} steps: ${await play(window, sliding(window))}`);
}
