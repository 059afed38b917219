'use strict'
// The whole API of jackd, against the server at PORT: node jackd.js PORT TUBE

const assert = require('node:assert/strict')
const Jackd = require('jackd')
const { Recorder } = require('./recorder')

const [port, tube] = [Number(process.argv[2]), process.argv[3]]
const recorder = new Recorder()
const API = [
  'connect', 'isConnected', 'put', 'use', 'reserve', 'reserveWithTimeout', 'reserveJob', 'delete',
  'release', 'bury', 'touch', 'watch', 'ignore', 'pauseTube', 'peek', 'peekReady', 'peekDelayed',
  'peekBuried', 'kick', 'kickJob', 'statsJob', 'statsTube', 'stats', 'listTubes',
  'listTubesWatched', 'getCurrentTube', 'listTubeUsed', 'quit', 'close', 'disconnect']

async function connected(options) {
  const client = recorder.watch(new Jackd(options))
  await client.connect({ host: '127.0.0.1', port })
  assert.equal(client.isConnected(), true)
  assert.equal(await client.use(tube), tube)
  assert.equal(await client.watch(tube), 2)
  assert.equal(await client.ignore('default'), 1)
  return client
}

const refused = (promise, message) => assert.rejects(promise, { message })

function yaml(text) {
  const lines = text.trim().split('\n').slice(1)
  return Object.fromEntries(lines.map(line => line.split(': ')))
}

async function producing(client) {
  const text = 'jøb\r\nwith lines'
  const first = await client.put(text, { priority: 5, ttr: 90 })
  const second = await client.put({ number: 1 }, { priority: 4 })
  const delayed = await client.put('later', { delay: 500, priority: 6 })
  assert.ok([first, second, delayed].every(id => /^\d+$/.test(id)))

  assert.equal(String((await client.peek(first)).payload), text)
  assert.deepEqual(JSON.parse((await client.peekReady()).payload), { number: 1 })
  assert.equal((await client.peekDelayed()).id, delayed)
  await refused(client.peekBuried(), 'NOT_FOUND')
  await refused(client.peek('0'), 'NOT_FOUND')
  assert.equal(yaml(await client.statsJob(first)).pri, '5')
  assert.equal(yaml(await client.statsJob(first)).ttr, '90')

  assert.equal((await client.reserve()).id, second)
  const job = await client.reserve()
  assert.deepEqual([job.id, String(job.payload)], [first, text])
  await client.touch(first)
  await client.delete(first)
  await client.delete(second)
  await refused(client.delete(first), 'NOT_FOUND')
  await refused(client.touch(first), 'NOT_FOUND')
  await refused(client.reserveWithTimeout(0), 'TIMED_OUT')

  assert.equal(await client.kick(10), 1)
  assert.equal((await client.reserveWithTimeout(5)).id, delayed)
  await client.delete(delayed)
}

async function working(client) {
  const id = await client.put('work')
  await client.reserve()
  await client.release(id, { priority: 9, delay: 500 })
  assert.equal(yaml(await client.statsJob(id)).state, 'delayed')
  await client.kickJob(id)
  assert.equal((await client.reserveJob(id)).id, id)
  await refused(client.reserveJob(id), 'NOT_FOUND')
  await client.bury(id, 3)
  assert.equal((await client.peekBuried()).id, id)
  await refused(client.release(id), 'NOT_FOUND')
  await client.kickJob(id)
  await refused(client.kickJob(id), 'NOT_FOUND')
  await client.reserve()
  await client.release(id)
  const stats = yaml(await client.statsJob(id))
  assert.deepEqual([stats.state, stats.reserves, stats.releases, stats.buries, stats.kicks],
    ['ready', '3', '2', '1', '2'])
  await client.delete(id)

  await client.put('short', { ttr: 1 })
  const short = await client.reserve()
  await refused(client.reserve(), 'DEADLINE_SOON')
  await client.delete(short.id)
}

async function tubes(client) {
  assert.equal(await client.watch(`${tube}.2`), 2)
  assert.match(await client.listTubesWatched(), new RegExp(`- ${tube}\\.2\n`))
  assert.equal(await client.ignore(`${tube}.2`), 1)
  await refused(client.ignore(tube), 'NOT_IGNORED')
  assert.equal(await client.getCurrentTube(), tube)
  assert.equal(await client.listTubeUsed(), tube)
  assert.match(await client.listTubes(), new RegExp(`- ${tube}\n`))
  assert.equal(yaml(await client.statsTube(tube))['current-watching'], '1')
  assert.ok(Number(yaml(await client.stats())['cmd-put']) >= 4)

  // This version forgets the end of the line.
  const pausing = client.pauseTube(tube, { delay: 500 })
  await client.write(Buffer.from('\r\n'))
  await pausing
  await client.put('paused')
  await refused(client.reserveWithTimeout(0), 'TIMED_OUT')
  const resuming = client.pauseTube(tube)
  await client.write(Buffer.from('\r\n'))
  await resuming
  await client.delete((await client.reserve()).id)
}

async function many(client) {
  const ids = await Promise.all(Array.from({ length: 300 }, (_, n) => client.put(`job ${n}`)))
  assert.equal(new Set(ids).size, 300)
  const worker = await connected()
  for (const [n, id] of ids.entries()) {
    const job = await worker.reserve()
    assert.deepEqual([job.id, String(job.payload)], [id, `job ${n}`])
    await worker.delete(id)
  }
  const big = 'x'.repeat(65000)
  await client.put(big)
  assert.equal(String((await worker.reserve()).payload), big)
  await worker.close() // gives it back
  const job = await client.reserveWithTimeout(5)
  assert.equal(String(job.payload), big)
  await client.delete(job.id)
}

async function wakingUp(client) {
  const worker = await connected({ useLegacyStringPayloads: true })
  const waiting = worker.reserve()
  const id = await client.put('wake up')
  assert.deepEqual(await waiting, { id, payload: 'wake up' })
  await worker.delete(id)
  await worker.disconnect()
}

async function main() {
  const client = await connected()
  for (const part of [producing, working, tubes, many, wakingUp]) await part(client)
  await client.quit()
  recorder.assertAll(API)
  console.log('jackd is content')
}

main()
