'use strict'
// The whole API of node-beanstalk, against the server at PORT: node node_beanstalk.js PORT TUBE

const assert = require('node:assert/strict')
const { Client, Pool, BeanstalkJobState } = require('node-beanstalk')
const { Recorder } = require('./recorder')

const [port, tube] = [Number(process.argv[2]), process.argv[3]]
const options = { host: '127.0.0.1', port, defaultTTR: 90 }
const recorder = new Recorder()
const pools = new Recorder()
const methods = type => Object.getOwnPropertyNames(type.prototype)
const CLIENT_API = methods(Client).filter(name => ![
  'constructor', 'waitQueue', 'payloadToBuffer', 'readCommandResponse', 'dispatchCommand'
].includes(name))
const POOL_API = methods(Pool).filter(name => ![
  'constructor', 'createPendingPromise', 'handleClientRelease'].includes(name))

async function settled(client) {
  assert.equal(await client.use(tube), tube)
  await client.watch(tube)
  await client.ignore('default')
  return client
}

async function connected() {
  const client = recorder.watch(new Client(options))
  await client.connect()
  assert.equal(client.isConnected, true)
  return settled(client)
}

async function producing(client) {
  const payload = { text: 'jøb\r\nwith lines', list: [1, 'zwei'] }
  const first = await client.put(payload, 60, 5)
  assert.equal(first.state, BeanstalkJobState.ready)
  const second = await client.put('urgent', 60, 4)
  const delayed = await client.put('later', 60, 6, 500)
  assert.equal(delayed.state, BeanstalkJobState.delayed)

  assert.deepEqual(await client.peek(first.id), { id: first.id, payload })
  assert.deepEqual(await client.peekReady(), { id: second.id, payload: 'urgent' })
  assert.deepEqual(await client.peekDelayed(), { id: delayed.id, payload: 'later' })
  assert.equal(await client.peekBuried(), null)

  assert.deepEqual(await client.reserve(), { id: second.id, payload: 'urgent' })
  assert.deepEqual(await client.reserve(), { id: first.id, payload })
  assert.equal(await client.touch(first.id), true)
  assert.equal(await client.delete(first.id), true)
  assert.equal(await client.delete(first.id), false)
  assert.equal(await client.touch(first.id), false)
  assert.equal(await client.delete(second.id), true)
  assert.equal(await client.peek(first.id), null)
  assert.equal(await client.statsJob(first.id), null)
  assert.equal(await client.reserveWithTimeout(0), null)
  assert.equal(await client.kick(10), 1)
  assert.equal((await client.reserveWithTimeout(5)).id, delayed.id)
  assert.equal(await client.delete(delayed.id), true)
}

async function working(client) {
  const { id } = await client.put('work')
  assert.equal((await client.statsJob(id)).ttr, 90)
  await client.reserve()
  assert.equal(await client.release(id, 9, 500), BeanstalkJobState.delayed)
  assert.equal(await client.kickJob(id), true)
  assert.equal((await client.reserveJob(id)).id, id)
  assert.equal(await client.reserveJob(id), null)
  assert.equal(await client.bury(id, 3), true)
  assert.equal(await client.bury(id, 3), false)
  assert.deepEqual(await client.peekBuried(), { id, payload: 'work' })
  assert.equal(await client.release(id), null)
  assert.equal(await client.kickJob(id), true)
  assert.equal(await client.kickJob(id), false)
  await client.reserve()
  assert.equal(await client.release(id, 7), BeanstalkJobState.ready)
  const stats = await client.statsJob(id)
  assert.deepEqual(
    [stats.id, stats.tube, stats.state, stats.pri, stats.reserves, stats.releases, stats.kicks],
    [id, tube, 'ready', 7, 3, 2, 2])
  assert.equal(await client.delete(id), true)
}

async function tubes(client) {
  assert.equal(await client.watch(`${tube}.2`), 2)
  assert.deepEqual((await client.listTubesWatched()).sort(), [tube, `${tube}.2`])
  assert.equal(await client.ignore(`${tube}.2`), true)
  assert.equal(await client.ignore(tube), false)
  assert.equal(await client.listTubeUsed(), tube)
  assert.ok((await client.listTubes()).includes(tube))
  const stats = await client.statsTube(tube)
  assert.deepEqual([stats.name, stats['current-using']], [tube, 1])
  assert.equal(await client.statsTube('no-such-tube'), null)
  assert.equal(typeof (await client.stats())['total-jobs'], 'number')

  assert.equal(await client.pauseTube(tube, 500), true)
  assert.equal(await client.pauseTube('no-such-tube', 1), false)
  await client.put('paused')
  assert.equal(await client.reserveWithTimeout(0), null)
  assert.equal((await client.statsTube(tube)).pause, 500)
  assert.equal(await client.pauseTube(tube, 0), true)
  await client.delete((await client.reserve()).id)
}

async function queued(client) {
  const puts = Array.from({ length: 300 }, (_, n) => client.put({ n }))
  assert.ok(client.isWorking && client.queueSize > 0)
  const ids = (await Promise.all(puts)).map(job => job.id)
  const jobs = await Promise.all(ids.map(() => client.reserve()))
  assert.deepEqual(jobs.map(job => job.payload.n), ids.map((_, n) => n))
  const deleted = await Promise.all(ids.map(id => client.delete(id)))
  assert.ok(deleted.every(Boolean))
}

async function pooled() {
  const pool = pools.watch(new Pool({ capacity: 3, clientOptions: options }))
  assert.deepEqual([pool.capacity, pool.getState()], [3, 'live'])
  const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
  for (const client of clients) await settled(client)
  const fourth = pool.connect()
  assert.equal(pool.waitingCount, 1)
  const [producer, ...workers] = clients
  const reserved = workers.map(worker => worker.reserve())
  await producer.put('for one')
  await producer.put('for the other')
  const jobs = await Promise.all(reserved)
  assert.deepEqual(jobs.map(job => job.payload).sort(), ['for one', 'for the other'])
  for (const [n, worker] of workers.entries()) assert.equal(await worker.delete(jobs[n].id), true)
  producer.releaseClient()
  assert.equal(await (await fourth).listTubeUsed(), tube)
  for (const client of clients) client.releaseClient()
  assert.equal(pool.idleCount, 3)
  await pool.disconnect()
  assert.equal(pool.getState(), 'disconnected')
  pool.restore()
  assert.equal(pool.getState(), 'live')
  await pool.disconnect(true)
}

async function leaving(client) {
  const worker = await connected()
  const { id } = await client.put('given back')
  assert.equal((await worker.reserve()).id, id)
  await worker.disconnect()
  assert.equal(worker.isConnected, false)
  assert.equal((await client.reserveWithTimeout(5)).id, id)
  assert.equal(await client.delete(id), true)
}

async function main() {
  const client = await connected()
  for (const part of [producing, working, tubes, queued, pooled, leaving]) await part(client)
  await client.disconnect()
  recorder.assertAll(CLIENT_API)
  pools.assertAll(POOL_API)
  console.log('node-beanstalk is content')
}

main()
