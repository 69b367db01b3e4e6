// The `@google/genai` package.

import { GoogleGenAI } from '@google/genai';

import { collect, model, parameters, run, said, turn, turns, untilCut, untilEnough, weather } from './scenarios.mjs';

const declared = { name: 'weather', description: 'The weather in a city.', parametersJsonSchema: parameters };
const config = { tools: [{ functionDeclarations: [declared] }] };

const client = (base) => new GoogleGenAI({ apiKey: 'client-key', httpOptions: { baseUrl: base } });
const content = (text) => async (base) => seen(await client(base).models.generateContent({ model, contents: text }));
const stream = (base, contents, more) => client(base).models.generateContentStream({ model, contents, ...more });

// The headers of an answer are there too, with what a connection needs.
const seen = ({ sdkHttpResponse, ...answer }) => answer;
async function* seenOf(answers) {
  for await (const answer of answers) yield seen(answer);
}

async function tools(base) {
  const chat = client(base).chats.create({ model, config });
  const call = await chat.sendMessage({ message: said.tool });
  const response = { id: call.functionCalls[0].id, name: 'weather', response: { result: weather } };
  const answer = await chat.sendMessage({ message: [{ functionResponse: response }] });
  return [seen(call), seen(answer)];
}

async function session(base) {
  const chat = client(base).chats.create({ model });
  const saw = [];
  for (let number = 0; number < turns; number += 1) {
    const { text, usageMetadata } = await chat.sendMessage({ message: turn(number) });
    saw.push([text, usageMetadata]);
  }
  return saw;
}

async function abort(base) {
  const leave = new AbortController();
  const answers = await stream(base, said.abort, { config: { abortSignal: leave.signal } });
  const saw = await untilEnough(seenOf(answers));
  leave.abort();
  return saw;
}

await run({
  count: async (base) => seen(await client(base).models.countTokens({ model, contents: said.plain })),
  plain: content(said.plain),
  stream: async (base) => collect(seenOf(await stream(base, said.stream))),
  tools,
  tools_stream: async (base) => collect(seenOf(await stream(base, said.tool, { config }))),
  session,
  abort,
  limited: content(said.limited),
  failing: content(said.failing),
  cut: async (base) => untilCut(seenOf(await stream(base, said.cut))),
});
