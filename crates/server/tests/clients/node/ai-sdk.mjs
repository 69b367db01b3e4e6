// The AI SDK: the `ai` package over its providers.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

import { collect, failure, model, run, said, turn, turns, untilCut, untilEnough, weather } from './scenarios.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const tools = {
  weather: tool({
    description: 'The weather in a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async () => weather,
  }),
};

const providers = {
  responses: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-client' })(model),
  chat: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-client' }).chat(model),
  anthropic: (base) => createAnthropic({ baseURL: `${base}/v1`, apiKey: 'sk-client' })(model),
  google: (base) => createGoogle({ baseURL: `${base}/v1beta`, apiKey: 'client-key' })(model),
};

// What the package makes itself, ids and times and headers, is not what was seen.
const told = ({ text, finishReason, usage, toolCalls, toolResults }) => ({
  text,
  finishReason,
  usage,
  toolCalls,
  toolResults,
});
const toldPart = ({ type, text, delta, toolName, input, output, finishReason, totalUsage, error }) => ({
  type,
  text,
  delta,
  toolName,
  input,
  output,
  finishReason,
  totalUsage,
  error: error && failure(error),
});

const scenarios = {};
for (const [name, provider] of Object.entries(providers)) {
  const generate = (text, more) => async (base) => {
    const { steps } = await generateText({ model: provider(base), prompt: text, ...more });
    return steps.map(told);
  };
  async function* parts(base, text, more) {
    const { stream } = streamText({ model: provider(base), prompt: text, onError: () => {}, ...more });
    for await (const part of stream) yield toldPart(part);
  }
  Object.assign(scenarios, {
    [`${name}_plain`]: generate(said.plain),
    [`${name}_stream`]: (base) => collect(parts(base, said.stream)),
    [`${name}_tools`]: generate(said.tool, { tools, stopWhen: isStepCount(3) }),
    [`${name}_tools_stream`]: (base) => collect(parts(base, said.tool, { tools, stopWhen: isStepCount(3) })),
    [`${name}_session`]: async (base) => {
      const messages = [];
      const saw = [];
      for (let number = 0; number < turns; number += 1) {
        messages.push({ role: 'user', content: turn(number) });
        const { text, usage, responseMessages } = await generateText({ model: provider(base), messages });
        messages.push(...responseMessages);
        saw.push([text, usage]);
      }
      return saw;
    },
    [`${name}_abort`]: async (base) => {
      const leave = new AbortController();
      const saw = await untilEnough(parts(base, said.abort, { abortSignal: leave.signal }));
      leave.abort();
      return saw;
    },
    [`${name}_limited_once`]: generate(said.limited_once),
    [`${name}_limited`]: generate(said.limited, { maxRetries: 1 }),
    [`${name}_failing`]: generate(said.failing, { maxRetries: 0 }),
    [`${name}_cut`]: (base) => untilCut(parts(base, said.cut)),
  });
}
scenarios.responses_lost_once = async (base) => {
  const { text } = await generateText({ model: providers.responses(base), prompt: said.lost_once });
  return text;
};

await run(scenarios);
