// Makes chats.db with @deepagents/context 0.29.1, and expected.json with what that package says is in it.
// How to run it: README.md.
import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import {
  ContextEngine, SqliteContextStore, XmlRenderer,
  assistant, assistantText, lastAssistantMessage, message, user,
} from '@deepagents/context';

const FILE = 'chats.db';
const COPY = 'copy.db';
for (const file of [FILE, COPY]) for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true });

const { DatabaseSync } = await import('node:sqlite');
const db = new DatabaseSync(FILE);
const store = new SqliteContextStore(db);

const text = (text, more = {}) => ({ type: 'text', text, ...more });
const said = (id, role, ...parts) => ({ id, role, parts });

async function support() {
  const open = () => new ContextEngine({
    store, chatId: 'support-42', userId: 'ada@example.org', metadata: { plan: 'gold', import: { of: 'theirs' } },
  });
  const chat = open();
  chat.set(user(said('q1', 'user', text('Where is order 7?'), {
    type: 'file', mediaType: 'image/png', filename: 'receipt.png', url: 'data:image/png;base64,iVBORw0KGgo=',
  })));
  chat.set(assistant({
    ...said('a1', 'assistant',
      { type: 'step-start' },
      { type: 'reasoning', text: 'Look it up first.', providerMetadata: { anthropic: { signature: 'c2ln' } } },
      text('One moment.'),
      {
        type: 'tool-find_order', toolCallId: 'call_1', state: 'output-available',
        input: { order: 7, price: 1e21 }, output: { status: 'sent', items: ['gloves', 'Mütze 🧶'] },
      },
      {
        type: 'tool-find_order', toolCallId: 'call_2', state: 'output-error', input: { order: -0.5 }, errorText: 'no such order',
      },
      { type: 'step-start' },
      text('It was sent.', { state: 'done' }),
      { type: 'source-url', sourceId: 's1', url: 'https://example.org/7', title: 'Order 7' },
      { type: 'data-map', id: 'd1', data: { at: [1, 2], none: null } }),
    metadata: { model: 'm-1', usage: { total: 12 } },
  }));
  await chat.save();
  await chat.checkpoint('before the refund');
  chat.set(user(said('q2', 'user', text('Refund it.'))));
  chat.set(assistant(said('a2', 'assistant',
    { type: 'step-start' },
    {
      type: 'dynamic-tool', toolName: 'refund', toolCallId: 'call_1', state: 'approval-requested',
      input: { order: 7 }, approval: { id: 'ok-1' },
    })));
  await chat.save();
  await chat.btw();
  await chat.rewind('a1');
  chat.set(user(said('q3', 'user', text('Forget it. <b>Thanks</b> & bye'))));
  chat.set(assistantText('You are welcome.', { id: 'a3' }));
  await chat.save();
  // An edit: a branch of its own, where the new row has another id than the message in it.
  await chat.switchBranch('main');
  chat.set(assistant(said('a2', 'assistant', text('I may not refund that.'))));
  await chat.save();
  chat.set(lastAssistantMessage('I may not refund that, sorry.'));
  await chat.save();
  await chat.restore('before the refund');
  chat.set(user(said('q4', 'user', text('Is it there yet?'))));
  await chat.save();
  // Grows in its place, as a streamed answer does.
  for (const parts of [[text('No')], [text('No'), text(', tomorrow.')]]) {
    chat.set(assistant(said('a4', 'assistant', ...parts)));
    await chat.save({ branch: false });
  }
  await chat.checkpoint('waiting');
  await chat.switchBranch('main-v3');
  await chat.updateChat({ title: 'Order 7', metadata: { open: true, tags: ['refund'] } });
}

// The first message is edited: the row is overwritten and what followed is left without a name.
async function overwritten() {
  const chat = new ContextEngine({ store, chatId: 'chat 2: größe?', userId: 'ada@example.org' });
  chat.set(message(said('first', 'user', text('Which sise?'))), assistantText('Nine.', { id: 'lost' }));
  await chat.save();
  chat.set(message(said('first', 'user', text('Which size?'))));
  await chat.save();
  chat.set(assistant(said('open', 'assistant', { type: 'step-start' }, {
    type: 'tool-measure', toolCallId: 'c', state: 'input-available', input: {},
  })));
  await chat.save();
}

async function others() {
  const long = new ContextEngine({ store, chatId: 'long', userId: 'team/bob' });
  for (let turn = 0; turn < 40; turn += 1) {
    long.set(user(said(`u${turn}`, 'user', text(`question ${turn}`))));
    long.set(assistantText(`answer ${turn}`, { id: `r${turn}` }));
    await long.save();
    if (turn % 10 === 9) await long.checkpoint(`turn ${turn}`);
    if (turn === 19) await long.rewind('r4');
  }
  const told = new ContextEngine({ store, chatId: 'told', userId: 'team/bob' });
  told.set(message(said('rules', 'system', text('Be brief.'))));
  told.set(user(said('hello', 'user', text('Hello'))), assistant(said('nothing', 'assistant')));
  await told.save();
  await store.createChat({ id: 'empty', userId: 'carol', title: 'Nothing said' });
}

await support();
await overwritten();
await others();
db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
db.exec('VACUUM');
db.exec('PRAGMA wal_checkpoint(TRUNCATE)');
db.close();

// What the package says, asked of a copy, since asking for a branch makes it the active one.
copyFileSync(FILE, COPY);
const copy = new SqliteContextStore(COPY);
const chats = [];
for (const info of await copy.listChats()) {
  const active = (await copy.getActiveBranch(info.id)).name;
  const branches = [];
  for (const { name } of await copy.listBranches(info.id)) {
    const chat = new ContextEngine({ store: copy, chatId: info.id, userId: info.userId });
    await chat.switchBranch(name);
    const { messages } = await chat.resolve({ renderer: new XmlRenderer() });
    branches.push({ name, messages });
  }
  const checkpoints = [];
  for (const { name, messageId } of await copy.listCheckpoints(info.id)) {
    const chain = await copy.getMessageChain(messageId);
    checkpoints.push({ name, messages: chain.map((row) => row.data) });
  }
  const { id, userId, title, metadata, createdAt } = info;
  chats.push({ id, userId, title, metadata, createdAt, active, branches, checkpoints });
}
chats.sort((one, other) => (one.id < other.id ? -1 : 1));
writeFileSync('expected.json', `${JSON.stringify(chats, null, 1)}\n`);
for (const end of ['', '-wal', '-shm']) rmSync(COPY + end, { force: true });
