// What @context-chef/core takes to compile one long conversation whose tokens are counted exactly, in the cases of our own benchmark.
// usage: node context_chef.mjs <tau-bench sessions, packed> <number of messages>…
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { ContextChef } from '@context-chef/core';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const [file, ...sizes] = process.argv.slice(2);
const sessions = JSON.parse(gunzipSync(readFileSync(file)));
const all = sessions.flatMap((session) => session.traj).filter((message) => message.role !== 'system');
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

// The counter its documentation gives, and the same with counts kept by text, which a host may well add.
const count = (message) => encode(JSON.stringify(message)).length;
const counters = {
  'as documented': () => (messages) => messages.reduce((sum, message) => sum + count(message), 0),
  'counts kept': () => {
    const kept = new Map();
    return (messages) =>
      messages.reduce((sum, message) => {
        const text = JSON.stringify(message);
        if (!kept.has(text)) kept.set(text, encode(text).length);
        return sum + kept.get(text);
      }, 0);
  },
};

async function timed(chef, history) {
  const begun = process.hrtime.bigint();
  chef.setHistory(history);
  await chef.compile({ target: 'openai' });
  return Number(process.hrtime.bigint() - begun);
}

const median = (times) => times.sort((a, b) => a - b)[times.length >> 1];

encode('loads the vocabulary');
for (const size of sizes.map(Number)) {
  const messages = Array.from({ length: size }, (_, n) => all[n % all.length]);
  for (const [name, counter] of Object.entries(counters)) {
    const fresh = () => new ContextChef({ logger: quiet, janitor: { contextWindow: 100_000_000, tokenizer: counter() } });
    const cold = [];
    for (let run = 0; run < 3; run++) cold.push(await timed(fresh(), messages));
    const chef = fresh();
    await timed(chef, messages);
    const next = [];
    for (let turn = 1; turn <= 5; turn++) {
      messages.push({ role: turn % 2 ? 'assistant' : 'user', content: `turn ${turn}` });
      next.push(await timed(chef, messages));
    }
    messages.length = size;
    console.log(JSON.stringify({ size, counter: name, ns: { cold: median(cold), 'one new message': median(next) } }));
  }
}
