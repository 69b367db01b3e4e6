// TanStack AI: the `@tanstack/ai` package over OpenAI's adapter.

import { chat, toolDefinition } from '@tanstack/ai';
import { createOpenaiChat } from '@tanstack/ai-openai';
import { z } from 'zod';

import { collect, run, said, untilCut, untilEnough, weather } from './scenarios.mjs';

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

async function* say(base, text, more) {
  const adapter = createOpenaiChat('gpt-5.1', 'sk-client', { baseURL: `${base}/v1` });
  const messages = [{ role: 'user', content: text }];
  for await (const event of chat({ adapter, messages, ...more })) yield told(event);
}

await run({
  plain: (base) => collect(say(base, said.plain)),
  stream: (base) => collect(say(base, said.stream)),
  tools: (base) => collect(say(base, said.tool, { tools: [tool] })),
  abort: async (base) => {
    const leave = new AbortController();
    const saw = await untilEnough(say(base, said.abort, { abortController: leave }));
    leave.abort();
    return saw;
  },
  limited: (base) => collect(say(base, said.limited)),
  lost_once: (base) => collect(say(base, said.lost_once)),
  cut: (base) => untilCut(say(base, said.cut)),
});
