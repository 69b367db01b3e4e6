// What a call costs in @context-chef/core behind one more step, in the conversation of our own benchmark `next_call`.
// usage: node context_chef_next_call.mjs <number of messages>…
import { ContextChef } from '@context-chef/core';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const sizes = process.argv.slice(2).map(Number);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const words = 'the parser reads the next token and reports where it stands ';

// An answer and the next question, a call and its output.
function message(at) {
  const id = `call_${Math.floor(at / 4)}`;
  switch (at % 4) {
    case 0:
      return { role: 'assistant', content: `answer ${at}: ${words}` };
    case 1:
      return { role: 'user', content: `question ${at}: ${words}` };
    case 2: {
      const call = { name: 'read_file', arguments: `{"line":${at}}` };
      return { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: call }] };
    }
    default:
      return { role: 'tool', tool_call_id: id, content: `${at}: ${words.repeat(3)}` };
  }
}

// Its documented counter, with the counts of messages kept, which a host may well add.
function counter() {
  const kept = new WeakMap();
  return (messages) =>
    messages.reduce((sum, message) => {
      if (!kept.has(message)) kept.set(message, encode(JSON.stringify(message)).length);
      return sum + kept.get(message);
    }, 0);
}

async function timed(chef, history) {
  const begun = process.hrtime.bigint();
  chef.setHistory(history);
  await chef.compile({ target: 'openai' });
  return Number(process.hrtime.bigint() - begun);
}

encode('loads the vocabulary');
for (const size of sizes) {
  const messages = Array.from({ length: size - 1 }, (_, at) => message(at + 1));
  const tokenizer = counter();
  const chef = new ContextChef({ logger: quiet, janitor: { contextWindow: 1_000_000_000, tokenizer } });
  const cold = await timed(chef, messages);
  const next = [];
  for (let at = size; at < size + 42; at += 2) {
    messages.push(message(at), message(at + 1));
    next.push(await timed(chef, messages));
  }
  next.sort((a, b) => a - b);
  console.log(JSON.stringify({ size, counter: 'counts kept', ns: { cold, next: next[next.length >> 1] } }));
}
