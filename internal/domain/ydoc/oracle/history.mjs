// Random histories of several people in one document, made by Yjs.
import * as Y from 'yjs'

// random returns a generator of numbers in [0, n), the same for the same seed.
export function random (seed) {
  let a = seed >>> 0
  return n => {
    a = (a + 0x6d2b79f5) >>> 0
    let t = Math.imul(a ^ (a >>> 15), a | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) % n
  }
}

const words = ['a', 'node', 'ü', '😀', '日本', '👩‍🔬', 'x y', '\n', 'longer text', '']
const keys = ['k1', 'k2', 'k3', 'ключ']

function value (rnd, depth = 0) {
  switch (rnd(depth > 2 ? 12 : 14)) {
    case 0: return null
    case 1: return undefined
    case 2: return rnd(2) === 0
    case 3: return rnd(100) - 50
    case 4: return (rnd(2) ? 1 : -1) * (2 ** 31 - 2 + rnd(4))
    case 5: return rnd(1000) / 8
    case 6: return rnd(1000) / 7
    case 7: return [2 ** 53 - 1, 1e21, -1e-7, NaN, Infinity, -0, 5e-324][rnd(7)]
    case 8: return BigInt(rnd(1000)) - 500n
    case 9: return new Uint8Array([1, 2, rnd(256)])
    case 10: case 11: return words[rnd(words.length)] + words[rnd(words.length)]
    case 12: return Array.from({ length: rnd(4) }, () => value(rnd, depth + 1))
    default: return Object.fromEntries(Array.from({ length: rnd(4) }, () => [keys[rnd(4)], value(rnd, depth + 1)]))
  }
}

// element is a value that Y.Array takes: neither undefined nor a BigInt.
function element (rnd) {
  const v = value(rnd)
  return v === undefined || typeof v === 'bigint' ? 'instead' : v
}

function nested (rnd) {
  switch (rnd(3)) {
    case 0: return new Y.Map([[keys[rnd(4)], value(rnd)], [keys[rnd(4)], rnd(3) ? value(rnd) : nested(rnd)]])
    case 1: return Y.Array.from([element(rnd), rnd(2) ? element(rnd) : nested(rnd)])
    default: return new Y.Text(words[rnd(words.length)])
  }
}

// boundary returns a position in s that cuts no character apart.
function boundary (rnd, s) {
  const at = rnd(s.length + 1)
  return at > 0 && at < s.length && s.charCodeAt(at) >= 0xdc00 && s.charCodeAt(at) < 0xe000 ? at + 1 : at
}

function changeMap (rnd, map) {
  const key = keys[rnd(4)]
  switch (rnd(6)) {
    case 0: return map.delete(key)
    case 1: return map.set(key, nested(rnd))
    case 2: case 3: {
      const inner = map.get(key)
      if (inner instanceof Y.AbstractType) return change(rnd, inner)
    }
    // falls through
    default: return map.set(key, value(rnd))
  }
}

function changeArray (rnd, array) {
  const at = rnd(array.length + 1)
  switch (rnd(5)) {
    case 0: return array.length > 0 && array.delete(rnd(array.length), 1)
    case 1: return at < array.length && array.delete(at, 1 + rnd(array.length - at))
    case 2: return array.insert(at, [nested(rnd)])
    case 3: {
      const inner = at < array.length && array.get(at)
      if (inner instanceof Y.AbstractType) return change(rnd, inner)
    }
    // falls through
    default: return array.insert(at, Array.from({ length: 1 + rnd(3) }, () => element(rnd)))
  }
}

function changeText (rnd, text) {
  const s = text.toString()
  const at = boundary(rnd, s)
  if (rnd(3) > 0 || at === s.length) return text.insert(at, words[rnd(words.length)])
  text.delete(at, boundary(rnd, s.slice(at)))
}

function change (rnd, type) {
  if (type instanceof Y.Map) return changeMap(rnd, type)
  if (type instanceof Y.Array) return changeArray(rnd, type)
  if (type instanceof Y.Text) return changeText(rnd, type)
}

// edit makes one random change to a document.
export function edit (rnd, doc) {
  switch (rnd(4)) {
    case 0: return changeArray(rnd, doc.getArray('a'))
    case 1: return changeText(rnd, doc.getText('t'))
    default: return changeMap(rnd, doc.getMap('m'))
  }
}

export function newDoc (gc = true) {
  const doc = new Y.Doc({ gc })
  doc.getMap('m')
  doc.getArray('a')
  doc.getText('t')
  return doc
}

export function load (updates, gc = true) {
  const doc = newDoc(gc)
  for (const u of updates) Y.applyUpdate(doc, u)
  return doc
}

// json returns what a document reads, in a form that JSON has.
export function json (doc) {
  const plain = { m: doc.getMap('m').toJSON(), a: doc.getArray('a').toJSON(), t: doc.getText('t').toString() }
  return JSON.parse(JSON.stringify(plain, (_, v) => {
    if (typeof v === 'bigint') return Number(v)
    if (v instanceof Uint8Array) return Buffer.from(v).toString('base64')
    return v
  }))
}

// canonical returns the one encoding of what updates make: everything deleted
// is collected and whatever can be joined is.
export function canonical (...updates) {
  const state = updates.length === 1 ? updates[0] : Y.encodeStateAsUpdate(load(updates))
  return Y.encodeStateAsUpdate(load([state]))
}

// history lets 2 to 5 people work. It returns every update they made, and
// states that one of them was in meanwhile.
export function history (rnd) {
  const updates = []
  const states = []
  const people = Array.from({ length: 2 + rnd(4) }, (_, i) => {
    const doc = newDoc(rnd(2) === 0)
    doc.clientID = rnd(2) ? i + 1 : rnd(2 ** 31) * 2 + 8 + i
    doc.on('update', (u, _, __, tr) => tr.local && updates.push(u))
    const undo = new Y.UndoManager([doc.getMap('m'), doc.getArray('a'), doc.getText('t')], { captureTimeout: 0 })
    return { doc, undo }
  })
  for (let i = 10 + rnd(50); i > 0; i--) {
    const { doc, undo } = people[rnd(people.length)]
    switch (rnd(12)) {
      case 0: undo.undo(); break
      case 1: undo.redo(); break
      case 2: case 3: {
        const { doc: from } = people[rnd(people.length)]
        Y.applyUpdate(doc, Y.encodeStateAsUpdate(from, rnd(2) ? Y.encodeStateVector(doc) : undefined))
        break
      }
      case 4: Y.applyUpdate(doc, updates[rnd(updates.length)] ?? new Uint8Array([0, 0])); break
      case 5: doc.transact(() => { for (let n = rnd(5); n >= 0; n--) edit(rnd, doc) }); break
      default: edit(rnd, doc)
    }
    if (rnd(10) === 0) states.push({ vector: Y.encodeStateVector(doc), update: Y.encodeStateAsUpdate(doc) })
  }
  for (const { doc } of people) states.push({ vector: Y.encodeStateVector(doc), update: Y.encodeStateAsUpdate(doc) })
  return { updates, states }
}

// shuffle returns the updates as a bad network might bring them: in any order,
// some twice, some merged, some within the whole state of somebody.
export function shuffle (rnd, { updates, states }) {
  const mess = updates.slice()
  for (let n = rnd(4); n > 0 && mess.length > 0; n--) mess.push(mess[rnd(mess.length)])
  for (let n = rnd(3); n > 0; n--) mess.push(states[rnd(states.length)].update)
  if (rnd(4) > 0) {
    for (let i = mess.length - 1; i > 0; i--) {
      const j = rnd(i + 1)
      ;[mess[i], mess[j]] = [mess[j], mess[i]]
    }
  }
  const delivered = []
  while (mess.length > 0) {
    const group = mess.splice(0, rnd(3) ? 1 : 1 + rnd(6))
    delivered.push(group.length > 1 ? Y.mergeUpdates(group) : group[0])
  }
  return delivered
}
