// Agents at full speed, by the AI SDK: a loop of tool calls, with and without a name, streamed or not; see `tool_loop.py`.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';

import { model, run, weather } from './scenarios.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

const calls = 29;

// Each request goes to the next of the base URLs.
const oneAfterTheOther = (bases) => {
  let count = 0;
  return (url, options) => fetch(String(url).replace(bases[0], bases[count++ % bases.length]), options);
};

const providers = {
  responses: (options) => createOpenAI({ ...options, baseURL: `${options.base}/v1`, apiKey: 'sk-client' })(model),
  chat: (options) => createOpenAI({ ...options, baseURL: `${options.base}/v1`, apiKey: 'sk-client' }).chat(model),
  anthropic: (options) => createAnthropic({ ...options, baseURL: `${options.base}/v1`, apiKey: 'sk-client' })(model),
  google: (options) => createGoogle({ ...options, baseURL: `${options.base}/v1beta`, apiKey: 'client-key' })(model),
};

const loop = (name, provider, streamed, pause) => async (base) => {
  const bases = base.split(',');
  let count = 0;
  const execute = async () => {
    if (pause > 0) await new Promise((done) => setTimeout(done, pause));
    count += 1;
    return `${weather} ${count}`;
  };
  const options = {
    model: provider({ base: bases[0], fetch: oneAfterTheOther(bases) }),
    prompt: `${name}\nupstream: again ${calls} weather {"city": "Paris"}`,
    tools: { weather: tool({ inputSchema: z.object({ city: z.string() }), execute }) },
    stopWhen: isStepCount(calls + 2),
    // Else the package sends references to what the provider stores, and no history that could be matched.
    providerOptions: { openai: { store: false } },
    headers: name.endsWith('_named') ? { 'x-contexture-conversation': name } : {},
  };
  const { steps } = streamed ? streamText(options) : await generateText(options);
  return (await steps).length;
};

const scenarios = {};
for (const [kind, provider] of Object.entries(providers)) {
  for (const mode of ['whole', 'streamed']) {
    for (const pause of [0, 5, 20, 50]) {
      for (const name of [`${kind}_${mode}_${pause}`, `${kind}_${mode}_${pause}_named`]) {
        scenarios[name] = loop(name, provider, mode === 'streamed', pause);
      }
    }
  }
}

await run(scenarios, 4);
