// Answers the differential test, one JSON line for each line: a history for a
// seed, then a verdict on what was made of it.
import { createInterface } from 'node:readline'
import * as Y from 'yjs'
import { canonical, edit, history, json, load, random, shuffle } from './history.mjs'

const text = u => Buffer.from(u).toString('base64')
const bytes = s => new Uint8Array(Buffer.from(s, 'base64'))

let current

// ask tells what Yjs makes of the history of a seed.
function ask ({ seed }) {
  const rnd = random(seed)
  const past = history(rnd)
  const delivered = shuffle(rnd, past)
  const cut = rnd(delivered.length + 1)
  // Yjs may leave something pending that could be taken in; not when it is
  // all in one update.
  const half = load([Y.encodeStateAsUpdate(load(delivered.slice(0, cut), rnd(2) === 0))])
  const whole = load(delivered, rnd(2) === 0)
  const state = canonical(Y.encodeStateAsUpdate(whole))
  const peer = past.states[rnd(past.states.length)]
  current = { rnd, whole, peer, half }
  return {
    delivered: delivered.map(text),
    cut,
    half: look(half),
    whole: look(whole),
    state: text(state),
    vector: text(peer.vector),
    diff: text(Y.encodeStateAsUpdate(load([state]), peer.vector)),
    merged: text(Y.mergeUpdates(delivered))
  }
}

const look = doc => ({
  json: json(doc),
  vector: text(Y.encodeStateVector(doc)),
  pending: doc.store.pendingStructs !== null || doc.store.pendingDs !== null
})

// same throws unless both updates make the same document.
function same (what, a, b) {
  const [x, y] = [canonical(a), canonical(b)]
  if (Buffer.compare(x, y) !== 0) throw new Error(`${what}: ${text(x)} is not ${text(y)}`)
}

// judge looks at what was made of the history.
function judge ({ half, full, diff, merged, edits }) {
  const { rnd, whole, peer } = current
  const state = Y.encodeStateAsUpdate(whole)
  same('the half', Y.encodeStateAsUpdate(current.half), bytes(half))
  same('the whole', state, bytes(full))
  same('the diff', state, Y.encodeStateAsUpdate(load([peer.update, bytes(diff)])))
  same('the merged updates', state, bytes(merged))

  // Somebody edits at the same time.
  const concurrent = []
  whole.on('update', (u, _, __, tr) => tr.local && concurrent.push(text(u)))
  for (let n = rnd(4); n > 0; n--) edit(rnd, whole)
  for (const e of edits) Y.applyUpdate(whole, bytes(e))
  return { concurrent, after: look(whole), state: text(canonical(Y.encodeStateAsUpdate(whole))) }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line)
  let answer
  try {
    answer = 'seed' in request ? ask(request) : judge(request)
  } catch (e) {
    answer = { error: e.stack }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
