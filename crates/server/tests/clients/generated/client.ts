// Calls a server with the types that are generated from the description of its API. The argument is its base URL.

import createClient from 'openapi-fetch';

import type { components, operations, paths } from './description.d.ts';

const [base] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: base });
const called: (keyof operations)[] = [];

function check(what: boolean, seen: unknown): asserts what {
  if (!what) throw new Error(JSON.stringify(seen));
}

/** What an operation answered; an error is thrown. */
function answer<T>(operation: keyof operations, { data, error }: { data?: T; error?: unknown }): T {
  check(error === undefined, error);
  called.push(operation);
  return data as T;
}

const path = { conversation: 'from-typescript' };
const params = { path };
const made = answer(
  'create_conversation',
  await client.POST('/api/v1/conversations', { body: { id: path.conversation, title: 'TypeScript' } }),
);
check(made.version === 1, made);

const question: components['schemas']['UiMessage'] = {
  id: 'm1',
  role: 'user',
  parts: [{ type: 'text', text: 'Where is my parcel?' }],
};
const saved = answer(
  'append_messages',
  await client.POST('/api/v1/conversations/{conversation}/messages', {
    params,
    body: { messages: [question], items: [{ type: 'message', role: 'assistant', content: 'It arrives today.' }] },
  }),
);
check(saved.items.length === 2, saved);

const { items } = answer('list_items', await client.GET('/api/v1/conversations/{conversation}/items', { params }));
const kinds: components['schemas']['ItemKind'][] = items.map((item) => item.kind);
check(kinds.join() === 'user,assistant', kinds);

answer(
  'set_checkpoint',
  await client.PUT('/api/v1/conversations/{conversation}/checkpoints/{checkpoint}', {
    params: { path: { ...path, checkpoint: 'asked' } },
  }),
);
answer(
  'create_branch',
  await client.POST('/api/v1/conversations/{conversation}/branches', { params, body: { name: 'aside' } }),
);
const { branches } = answer(
  'list_branches',
  await client.GET('/api/v1/conversations/{conversation}/branches', { params }),
);
check(branches.map((branch) => branch.name).join() === 'main,aside', branches);
answer(
  'delete_branch',
  await client.DELETE('/api/v1/conversations/{conversation}/branches/{branch}', {
    params: { path: { ...path, branch: 'aside' } },
  }),
);
const { checkpoints } = answer(
  'list_checkpoints',
  await client.GET('/api/v1/conversations/{conversation}/checkpoints', { params }),
);
check(checkpoints[0]?.name === 'asked', checkpoints);

const compiled = answer(
  'compile_conversation',
  await client.POST('/api/v1/conversations/{conversation}/compile', {
    params,
    body: { to: 'openai-chat', model: 'gpt-5.4' },
  }),
);
check(Array.isArray(compiled.payload.messages), compiled);
const { hits } = answer('search_items', await client.GET('/api/v1/search', { params: { query: { query: 'parcel' } } }));
check(hits.some((hit) => hit.conversation === path.conversation), hits);

const { error } = await client.GET('/api/v1/conversations/{conversation}', { params: { path: { conversation: 'nowhere' } } });
check(error !== undefined && error.code === 'not_found', error);

// Lines of JSON go as they are.
const { data: lines } = await client.GET('/api/v1/conversations/{conversation}/export', { params, parseAs: 'text' });
check(lines !== undefined && lines.includes('from-typescript'), lines);
const again = await client.POST('/api/v1/import', {
  body: lines,
  bodySerializer: (body) => body,
  headers: { 'content-type': 'application/jsonl' },
});
check(again.error?.code === 'already_exists', again);

console.log(JSON.stringify(called));
