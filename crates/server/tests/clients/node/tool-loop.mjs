// Agents at full speed, by the AI SDK: a loop of tool calls, with and without a name, streamed or not; see `tool_loop.py`.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

import { model, run, weather } from './scenarios.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const calls = 29;

const providers = {
  responses: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-client' })(model),
  chat: (base) => createOpenAI({ baseURL: `${base}/v1`, apiKey: 'sk-client' }).chat(model),
  anthropic: (base) => createAnthropic({ baseURL: `${base}/v1`, apiKey: 'sk-client' })(model),
  google: (base) => createGoogle({ baseURL: `${base}/v1beta`, apiKey: 'client-key' })(model),
};

const scenarios = {};
for (const [kind, provider] of Object.entries(providers)) {
  for (const [mode, streamed, pause] of [
    ['whole', false, 0],
    ['whole_named', false, 5],
    ['streamed', true, 20],
    ['streamed_named', true, 0],
  ]) {
    const name = `${kind}_${mode}`;
    scenarios[name] = async (base) => {
      let count = 0;
      const execute = async () => {
        if (pause > 0) await new Promise((done) => setTimeout(done, pause));
        count += 1;
        return `${weather} ${count}`;
      };
      const options = {
        model: provider(base),
        prompt: `${name}\nupstream: again ${calls} weather {"city": "Paris"}`,
        tools: { weather: tool({ inputSchema: z.object({ city: z.string() }), execute }) },
        stopWhen: isStepCount(calls + 2),
        // Else the package sends references to what the provider stores, and no history that could be matched.
        providerOptions: { openai: { store: false } },
        headers: mode.endsWith('_named') ? { 'x-contexture-conversation': name } : {},
      };
      const { steps } = streamed ? streamText(options) : await generateText(options);
      return (await steps).length;
    };
  }
}

await run(scenarios);
