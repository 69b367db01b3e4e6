// The `@anthropic-ai/sdk` package.

import Anthropic from '@anthropic-ai/sdk';

import { collect, model, parameters, run, said, turn, turns, untilCut, untilEnough, weather } from './scenarios.mjs';

const tool = { name: 'weather', description: 'The weather in a city.', input_schema: parameters };

const client = (base, maxRetries = 2) => new Anthropic({ baseURL: base, apiKey: 'sk-client', maxRetries });
const user = (content) => ({ role: 'user', content });
const ask = (api, messages, more) => api.messages.create({ model, max_tokens: 1000, messages, ...more });

const message = (text, retries) => (base) => ask(client(base, retries), [user(text)]);
const stream = (base, text, more) => ask(client(base), [user(text)], { stream: true, ...more });

async function tools(base) {
  const api = client(base);
  const messages = [user(said.tool)];
  const saw = [];
  for (let round = 0; round < 2; round += 1) {
    const answer = await ask(api, messages, { tools: [tool] });
    saw.push(answer);
    messages.push({ role: 'assistant', content: answer.content });
    const calls = answer.content.filter(({ type }) => type === 'tool_use');
    messages.push(user(calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: weather }))));
  }
  return saw;
}

async function session(base) {
  const api = client(base);
  const messages = [];
  const saw = [];
  // With marks for the cache, as agents set them.
  const system = [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral' } }];
  for (let number = 0; number < turns; number += 1) {
    messages.push(user(turn(number)));
    const { content, usage } = await ask(api, messages, { system });
    messages.push({ role: 'assistant', content });
    saw.push([content, usage]);
  }
  return saw;
}

await run({
  models: async (base) => collect(await client(base).models.list()),
  count: (base) => client(base).messages.countTokens({ model, messages: [user(said.plain)] }),
  plain: message(said.plain),
  stream: async (base) => collect(await stream(base, said.stream)),
  tools,
  tools_stream: async (base) => collect(await stream(base, said.tool, { tools: [tool] })),
  session,
  abort: async (base) => untilEnough(await stream(base, said.abort)),
  limited_once: message(said.limited_once),
  limited: message(said.limited, 1),
  failing: message(said.failing, 1),
  lost_once: message(said.lost_once),
  cut: async (base) => untilCut(await stream(base, said.cut)),
});
