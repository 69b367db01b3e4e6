// TanStack AI: the `@tanstack/ai` package over OpenAI's adapter.

import { chat, toolDefinition } from '@tanstack/ai';
import { createOpenaiChat } from '@tanstack/ai-openai';
import { z } from 'zod';

import { collect, run, said, turn, turns, untilCut, untilEnough, weather } from './scenarios.mjs';

const tool = toolDefinition({
  name: 'weather',
  description: 'The weather in a city.',
  inputSchema: z.object({ city: z.string() }),
}).server(async () => weather);

// Ids and times that the package makes are not what was seen.
const told = ({ type, delta, toolCallName, finishReason, usage, content, message, error }) => ({
  type,
  delta,
  toolCallName,
  finishReason,
  usage,
  content,
  message,
  error,
});

async function* answer(base, messages, more) {
  const adapter = createOpenaiChat('gpt-5.1', 'sk-client', { baseURL: `${base}/v1` });
  for await (const event of chat({ adapter, messages, ...more })) yield told(event);
}

const user = (content) => ({ role: 'user', content });
const say = (base, text, more) => answer(base, [user(text)], more);

async function session(base) {
  const messages = [];
  const saw = [];
  for (let number = 0; number < turns; number += 1) {
    messages.push(user(turn(number)));
    const events = await collect(answer(base, messages));
    const texts = events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT');
    const content = texts.map(({ delta }) => delta).join('');
    messages.push({ role: 'assistant', content });
    saw.push([content, events.at(-1)]);
  }
  return saw;
}

await run({
  plain: (base) => collect(say(base, said.plain)),
  stream: (base) => collect(say(base, said.stream)),
  tools: (base) => collect(say(base, said.tool, { tools: [tool] })),
  session,
  abort: async (base) => {
    const leave = new AbortController();
    const saw = await untilEnough(say(base, said.abort, { abortController: leave }));
    leave.abort();
    return saw;
  },
  limited_once: (base) => collect(say(base, said.limited_once)),
  limited: (base) => collect(say(base, said.limited)),
  failing: (base) => collect(say(base, said.failing)),
  lost_once: (base) => collect(say(base, said.lost_once)),
  cut: (base) => untilCut(say(base, said.cut)),
});
