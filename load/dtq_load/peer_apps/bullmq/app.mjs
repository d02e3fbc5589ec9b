// BullMQ in its own processes: `app.mjs work SLOTS` is a worker, anything else a client, whose words
// and answer `dtq_load/bench/peer.py` describes.

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, QueueEvents, Worker } from 'bullmq';

const QUEUE = 'bench';
const BULK = 500;
const RETENTION_S = 3600; // as long as this engine keeps its results

const url = new URL(process.env.BENCH_URL);
const connection = {
  host: url.hostname, port: Number(url.port), db: Number(url.pathname.slice(1) || 0),
  maxRetriesPerRequest: null,
};

const witness = (event, number) =>
  appendFileSync(process.env.BENCH_WITNESS, `${event} ${number} ${process.pid}\n`);

const tasks = {
  nothing: async ({ number }) => number,
  hold: async ({ number, ms }) => {
    witness('start', number);
    await sleep(ms);
    witness('end', number);
  },
};

function work(slots) {
  const worker = new Worker(QUEUE, (job) => tasks[job.name](job.data), {
    connection, concurrency: slots, removeOnComplete: { age: RETENTION_S },
  });
  worker.on('error', (error) => console.error(error));
}

async function submit(queue, count, inBulk) {
  if (!inBulk) {
    for (let number = 0; number < count; number += 1) await queue.add('nothing', { number });
    return;
  }
  for (let start = 0; start < count; start += BULK) {
    const length = Math.min(BULK, count - start);
    await queue.addBulk(Array.from({ length }, (_, index) => (
      { name: 'nothing', data: { number: start + index } })));
  }
}

async function latency(queue, count) {
  const events = new QueueEvents(QUEUE, { connection });
  await events.waitUntilReady();
  const ms = [];
  for (let number = 0; number <= count; number += 1) {
    const begun = performance.now();
    const result = await (await queue.add('nothing', { number })).waitUntilFinished(events, 10_000);
    if (result !== number) throw new Error(`task ${number} has the result ${result}`);
    ms.push(performance.now() - begun);
  }
  await events.close();
  return ms.slice(1);
}

async function ask(what, words) {
  const count = Number(words[0]);
  const queue = new Queue(QUEUE, { connection });
  await queue.waitUntilReady();
  const begun = performance.now();
  const answer = {};
  if (what === 'latency') {
    answer.ms = await latency(queue, count);
  } else {
    if (what === 'submit') {
      await submit(queue, count, words.includes('--bulk'));
    } else if (what === 'hold') {
      const ms = Number(words[1]);
      for (let number = 0; number < count; number += 1) await queue.add('hold', { number, ms });
    } else {
      throw new Error(`${what} is not one of work, submit, latency, hold`);
    }
    answer.seconds = (performance.now() - begun) / 1000;
  }
  await queue.close();
  console.log(JSON.stringify(answer));
}

const [what, ...words] = process.argv.slice(2);
if (what === 'work') work(Number(words[0]));
else await ask(what, words);
