// What every client is asked, and how what it saw is told: see `python/scenarios.py`, which is the same in Python.

import { readFileSync } from 'node:fs';

export const said = JSON.parse(readFileSync(new URL('../said.json', import.meta.url), 'utf8'));
export const { model, turns, weather, abort_after: abortAfter } = said;

/** What the person says in a turn of the session. */
export const turn = (number) => said.turn.replace('{number}', number);

/** The tool as JSON Schema. */
export const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};

/** Runs the scenarios that the command line names, all if it names none: `script BASE_URL [scenario…]`. */
export async function run(scenarios, atOnce = 1) {
  const [base, ...names] = process.argv.slice(2);
  const waiting = names.length > 0 ? names : Object.keys(scenarios);
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      let saw;
      try {
        saw = await scenarios[name](base);
      } catch (error) {
        saw = failure(error);
      }
      // Where it asked is not what it saw.
      console.log(`saw ${name} ${JSON.stringify(saw).replaceAll(base, 'http://base')}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

/** What can be seen of an error: its class, its status, what the provider said. */
export function failure(error) {
  const { message: text, status, statusCode, error: body, responseBody, cause } = error;
  return {
    error: error.constructor.name,
    text,
    status: status ?? statusCode ?? null,
    body: body ?? responseBody ?? null,
    cause: cause?.code ?? cause?.message ?? null,
  };
}

export async function collect(events) {
  const seen = [];
  for await (const event of events) seen.push(event);
  return seen;
}

/** The events of a stream that breaks, and how it broke. */
export async function untilCut(events) {
  const seen = [];
  try {
    for await (const event of events) seen.push(event);
  } catch (error) {
    return { events: seen, failure: failure(error) };
  }
  return { events: seen, failure: null };
}

/** The first events of a stream that is then given up: leaving the loop closes it. */
export async function untilEnough(events) {
  const seen = [];
  for await (const event of events) {
    seen.push(event);
    if (seen.length === abortAfter) break;
  }
  return seen;
}
