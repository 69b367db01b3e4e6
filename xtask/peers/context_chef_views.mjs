// What @context-chef/core still shows of real sessions in small windows, for the measure of retention: its overflow path
// with exact counts and no model to summarise with, as ours has none either.
// usage: node context_chef_views.mjs <folder of the test data> <file to write> <tokens of a window>…
// writes, by session and window, what the model reads at the last call: `documented` with its defaults, `full` with the
// whole window used
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { ContextChef } from '@context-chef/core';
import { encode } from 'gpt-tokenizer/encoding/o200k_base';

const [data, to, ...limits] = process.argv.slice(2);
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

const tau = JSON.parse(gunzipSync(readFileSync(join(data, 'tau-bench/gpt-4o-airline.json.gz'))));
const sessions = tau.map((session, at) => [`tau-${at}`, session.traj]);
for (const name of readdirSync(join(data, 'swe-agent')).filter((name) => name.endsWith('.traj'))) {
  const entries = JSON.parse(readFileSync(join(data, 'swe-agent', name))).history;
  const messages = entries.map(({ role, content, tool_calls, tool_call_ids }) => ({
    role,
    content,
    ...(tool_calls ? { tool_calls } : {}),
    ...(tool_call_ids?.[0] ? { tool_call_id: tool_call_ids[0] } : {}),
  }));
  sessions.push([name, messages]);
}

const text = (content) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n'));
const said = (message) => [text(message.content), ...(message.tool_calls ?? []).map((call) => `${call.function.name} ${call.function.arguments}`)].join('\n');
// The counter its documentation gives.
const tokenizer = (messages) => messages.reduce((sum, message) => sum + encode(JSON.stringify(message)).length, 0);
// The calls of a session: what stands before one is not the model's, and what follows is, or nothing.
const isCall = (messages, at) => messages[at - 1].role !== 'assistant' && (at === messages.length || messages[at].role === 'assistant');

async function last(messages, janitor) {
  const system = messages.filter((message) => message.role === 'system');
  const history = messages.filter((message) => message.role !== 'system').map((message) => ({ ...message, content: text(message.content) }));
  const chef = new ContextChef({ logger: quiet, janitor: { tokenizer, logger: quiet, ...janitor } });
  chef.setSystemPrompt(system.map((message) => ({ role: 'system', content: text(message.content) })));
  let view = '';
  for (let at = 1; at <= history.length; at++) {
    if (!isCall(history, at)) continue;
    chef.setHistory(history.slice(0, at));
    const payload = await chef.compile({ target: 'openai' });
    view = payload.messages.filter((message) => message.role !== 'system').map(said).join('\n');
  }
  return view;
}

const views = {};
for (const [name, messages] of sessions) {
  views[name] = {};
  for (const limit of limits) {
    const contextWindow = Number(limit);
    views[name][limit] = {
      documented: await last(messages, { contextWindow }),
      full: await last(messages, { contextWindow, triggerRatio: 1, preserveRatio: 1 }),
    };
  }
}
writeFileSync(to, JSON.stringify(views));
