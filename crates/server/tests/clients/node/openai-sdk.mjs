// The `openai` package: responses and chat completions.

import OpenAI from 'openai';

import { collect, model, parameters, run, said, turn, turns, untilCut, untilEnough, weather } from './scenarios.mjs';

const described = { name: 'weather', description: 'The weather in a city.', parameters, strict: true };
const tool = { type: 'function', ...described };
const chatTool = { type: 'function', function: described };

const client = (base, maxRetries = 2) => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-client', maxRetries });
const user = (content) => ({ role: 'user', content });

const respond = (text, retries) => (base) => client(base, retries).responses.create({ model, input: text });
const streamResponse = (base, input, more) => client(base).responses.create({ model, input, stream: true, ...more });

async function responsesTools(base) {
  const api = client(base);
  const input = [user(said.tool)];
  const saw = [];
  for (let round = 0; round < 2; round += 1) {
    const answer = await api.responses.create({ model, input, tools: [tool] });
    saw.push(answer);
    input.push(...answer.output);
    for (const { type, call_id } of answer.output) {
      if (type === 'function_call') input.push({ type: 'function_call_output', call_id, output: weather });
    }
  }
  return saw;
}

async function responsesSession(base) {
  const api = client(base);
  const input = [];
  const saw = [];
  for (let number = 0; number < turns; number += 1) {
    input.push(user(turn(number)));
    const answer = await api.responses.create({ model, input });
    input.push(...answer.output);
    saw.push([answer.output_text, answer.usage]);
  }
  return saw;
}

const chat = (text, retries) => (base) =>
  client(base, retries).chat.completions.create({ model, messages: [user(text)] });
const streamChat = (base, text, more) =>
  client(base).chat.completions.create({ model, messages: [user(text)], stream: true, ...more });

async function chatTools(base) {
  const api = client(base);
  const messages = [user(said.tool)];
  const saw = [];
  for (let round = 0; round < 2; round += 1) {
    const answer = await api.chat.completions.create({ model, messages, tools: [chatTool] });
    saw.push(answer);
    const [{ message }] = answer.choices;
    messages.push(message);
    for (const { id } of message.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: id, content: weather });
  }
  return saw;
}

async function chatSession(base) {
  const api = client(base);
  const messages = [{ role: 'system', content: 'Be short.' }];
  const saw = [];
  for (let number = 0; number < turns; number += 1) {
    messages.push(user(turn(number)));
    const { choices, usage } = await api.chat.completions.create({ model, messages });
    messages.push(choices[0].message);
    saw.push([choices[0].message.content, usage]);
  }
  return saw;
}

await run({
  models: async (base) => collect(await client(base).models.list()),
  responses_plain: respond(said.plain),
  responses_stream: async (base) => collect(await streamResponse(base, said.stream)),
  responses_tools: responsesTools,
  responses_tools_stream: async (base) => collect(await streamResponse(base, said.tool, { tools: [tool] })),
  responses_session: responsesSession,
  responses_abort: async (base) => untilEnough(await streamResponse(base, said.abort)),
  responses_limited_once: respond(said.limited_once),
  responses_limited: respond(said.limited, 1),
  responses_failing: respond(said.failing, 1),
  responses_lost_once: respond(said.lost_once),
  responses_cut: async (base) => untilCut(await streamResponse(base, said.cut)),
  chat_plain: chat(said.plain),
  chat_stream: async (base) => collect(await streamChat(base, said.stream, { stream_options: { include_usage: true } })),
  chat_tools: chatTools,
  chat_tools_stream: async (base) => collect(await streamChat(base, said.tool, { tools: [chatTool] })),
  chat_session: chatSession,
  chat_abort: async (base) => untilEnough(await streamChat(base, said.abort)),
  chat_limited_once: chat(said.limited_once),
  chat_limited: chat(said.limited, 1),
  chat_failing: chat(said.failing, 1),
  chat_lost_once: chat(said.lost_once),
  chat_cut: async (base) => untilCut(await streamChat(base, said.cut)),
});
