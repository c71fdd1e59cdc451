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
  current = { rnd, whole, peer, state, half: canonical(Y.encodeStateAsUpdate(half)) }
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

// same throws unless the updates make the document with that encoding.
function same (what, state, ...updates) {
  const got = canonical(...updates.map(bytes))
  if (Buffer.compare(state, got) !== 0) throw new Error(`${what}: ${text(got)} is not ${text(state)}`)
}

// judge looks at what was made of the history.
function judge ({ half, full, diff, merged, taken, edits }) {
  const { rnd, whole, peer, state } = current
  same('the half', current.half, half)
  same('the whole', state, full)
  same('the diff', state, text(peer.update), diff)
  same('the merged updates', state, merged)
  same('what was passed on', state, ...taken)

  // Somebody edits at the same time.
  const concurrent = []
  whole.on('update', (u, _, __, tr) => tr.local && concurrent.push(text(u)))
  for (let n = rnd(4); n > 0; n--) edit(rnd, whole)
  for (const e of edits) Y.applyUpdate(whole, bytes(e))
  return { concurrent, after: look(whole), state: text(canonical(Y.encodeStateAsUpdate(whole))) }
}

// dare applies one update after the other to a document, and tells what went
// wrong, if anything.
function dare ({ updates }) {
  load(updates.map(bytes))
  return {}
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line)
  let answer
  try {
    answer = 'seed' in request ? ask(request) : 'updates' in request ? dare(request) : judge(request)
  } catch (e) {
    answer = { error: e.stack }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
