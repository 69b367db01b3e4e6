// The costs of @deepagents/context's SQLite store, in the lines of our own benchmark.
// usage: node deepagents.mjs <directory for databases> <size>…
import { DatabaseSync } from 'node:sqlite';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { ContextEngine, SqliteContextStore, user } from '@deepagents/context';

const [directory, ...sizes] = process.argv.slice(2);
const text = (n) => `${n} ${'words of a message '.repeat(6)}`;

async function median(runs, work) {
  const times = [];
  for (let run = 0; run < runs; run++) {
    const begun = process.hrtime.bigint();
    await work(run);
    times.push(Number(process.hrtime.bigint() - begun));
  }
  return times.sort((a, b) => a - b)[times.length >> 1];
}

for (const size of sizes.map(Number)) {
  const path = join(directory, `deepagents-${size}.db`);
  const store = new SqliteContextStore(path);
  const chatId = `of-${size}`;
  const engine = new ContextEngine({ store, chatId, userId: 'ada' });
  engine.set(user(text(0)));
  await engine.save();
  // Filled by SQL: filling by save() takes time that grows as the square of the size.
  const [branch] = await store.listBranches(chatId);
  const db = new DatabaseSync(path);
  const rows = db.prepare('SELECT * FROM messages LIMIT 1').get();
  const message = db.prepare(
    'INSERT INTO messages (id, chatId, parentId, name, type, data, createdAt) VALUES (?, ?, ?, ?, ?, ?, ?)');
  const words = db.prepare('INSERT INTO messages_fts (messageId, chatId, name, content) VALUES (?, ?, ?, ?)');
  db.exec('BEGIN');
  let parent = rows.id;
  let middle = parent;
  for (let n = 1; n < size; n++) {
    const id = randomUUID();
    const data = JSON.stringify({ ...JSON.parse(rows.data), id, parts: [{ type: 'text', text: text(n) }] });
    message.run(id, chatId, parent, rows.name, rows.type, data, rows.createdAt);
    words.run(id, chatId, rows.name, data);
    parent = id;
    if (n === size >> 1) middle = id;
  }
  db.prepare('UPDATE branches SET headMessageId = ? WHERE id = ?').run(parent, branch.id);
  db.exec('COMMIT');
  const out = {};
  const fresh = () => new ContextEngine({ store, chatId, userId: 'ada' });
  const writer = fresh();
  out['append 1 of 200 B'] = await median(size > 50_000 ? 5 : 21, async (n) => {
    writer.set(user(text(1_000_000 + n)));
    await writer.save();
  });
  out['read whole path'] = await median(size > 50_000 ? 3 : 7, async () => {
    const [active] = await store.listBranches(chatId).then((all) => all.filter((one) => one.isActive));
    await store.getMessageChain(active.headMessageId);
  });
  out['list conversations'] = await median(7, () => store.listChats({ userId: 'ada' }));
  const branches = size > 50_000 ? 3 : 10;
  out['branch in the middle'] = await median(branches, () => fresh().rewind(middle));
  out['list branches, each'] = (await median(3, () => store.listBranches(chatId))) / (branches + 1);
  out['search a rare word'] = await median(7, () => store.searchMessages(chatId, '1000001'));
  const begun = process.hrtime.bigint();
  try {
    await store.deleteChat(chatId, { userId: 'ada' });
    out['delete the conversation'] = Number(process.hrtime.bigint() - begun);
  } catch (error) {
    out['delete the conversation'] = null;
  }
  db.close();
  console.log(JSON.stringify({ size, ns: out }));
}
