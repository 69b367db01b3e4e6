// Histories with a long output, asked for a line of it, with `openai`: see `python/reading.py`, where the other clients are.

import OpenAI from 'openai';

import { run, said } from './scenarios.mjs';

const long = Array.from({ length: said.lines }, (_, number) => said.line.replace('{number}', number)).join('\n');
const parameters = { type: 'object', properties: {} };

const client = (base) => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-client' });
const user = (content) => ({ role: 'user', content });

const chat = (ask) => async (base) => {
  const api = client(base).chat.completions;
  const tools = [{ type: 'function', function: { name: 'ls', parameters } }];
  const call = { id: 'call_1', type: 'function', function: { name: 'ls', arguments: '{}' } };
  const messages = [
    user('List it.'),
    { role: 'assistant', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: long },
    { role: 'assistant', content: 'There it is.' },
  ];
  const saw = [];
  for (const text of [said.reads, 'Thanks.']) {
    messages.push(user(text));
    const { choices, usage } = await ask(api, { model: 'gpt-4.1', messages, tools });
    const [{ message }] = choices;
    messages.push({ role: 'assistant', content: message.content });
    saw.push([message.content, message.tool_calls?.length ?? 0, usage.completion_tokens]);
  }
  return saw;
};

const responses = (ask) => async (base) => {
  const api = client(base).responses;
  const tools = [{ type: 'function', name: 'ls', parameters, strict: false }];
  const input = [
    user('List it.'),
    { type: 'function_call', call_id: 'call_1', name: 'ls', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: long },
    { role: 'assistant', content: 'There it is.' },
  ];
  const saw = [];
  for (const text of [said.reads, 'Thanks.']) {
    input.push(user(text));
    const { output, output_text, usage } = await ask(api, { model: 'gpt-4.1', input, tools });
    input.push(...output);
    const calls = output.filter(({ type }) => type === 'function_call');
    saw.push([output_text, calls.length, usage.output_tokens]);
  }
  return saw;
};

const whole = (api, asked) => api.create(asked);

await run({
  'chat-whole': chat(whole),
  'chat-streamed': chat((api, asked) => api.stream({ ...asked, stream_options: { include_usage: true } }).finalChatCompletion()),
  'responses-whole': responses(whole),
  'responses-streamed': responses((api, asked) => api.stream({ ...asked, store: false }).finalResponse()),
});
