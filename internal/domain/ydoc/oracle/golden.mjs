// Prints the golden vectors: small documents that Yjs made, and how they read.
import * as Y from 'yjs'
import { canonical, history, json, load, newDoc, random, shuffle } from './history.mjs'

const hex = u => Buffer.from(u).toString('hex')
const vectors = []

function add (name, updates) {
  const doc = load(updates)
  vectors.push({
    name,
    updates: updates.map(hex),
    json: json(doc),
    vector: hex(Y.encodeStateVector(doc)),
    state: hex(canonical(Y.encodeStateAsUpdate(doc)))
  })
}

// one adds what a single person does, step by step.
function one (name, ...steps) {
  const doc = newDoc()
  doc.clientID = 7
  const updates = []
  doc.on('update', u => updates.push(u))
  for (const step of steps) doc.transact(() => step(doc.getMap('m'), doc.getArray('a'), doc.getText('t'), doc))
  add(name, updates)
}

// two adds what two people do at once, after they saw the same beginning.
function two (name, start, left, right) {
  const first = newDoc()
  first.clientID = 3
  start(first)
  const base = Y.encodeStateAsUpdate(first)
  const [a, b] = [[9, left], [5, right]].map(([id, step]) => {
    const doc = load([base])
    doc.clientID = id
    const before = Y.encodeStateVector(doc)
    doc.transact(() => step(doc))
    return Y.encodeStateAsUpdate(doc, before)
  })
  add(name, [base, a, b])
  add(`${name}, the other way round`, [b, a, base])
}

for (const [name, v] of Object.entries({
  null: null, undefined, true: true, false: false, zero: 0, 'minus zero': -0, 'minus five': -5, 300: 300,
  'the largest integer': 2 ** 31 - 1, 'beyond the largest integer': 2 ** 31, 'a half': 0.5, 'a third': 1 / 3,
  'not a number': NaN, 'a bigint': -12345678901234567n, 'an empty string': '', 'an emoji': 'a😀b', bytes: new Uint8Array([0, 255]),
  'an array': [1, [2, [null, undefined]]], 'an object': { b: 1, a: { c: undefined, d: 'x' } }
})) one(`a map with ${name}`, m => m.set('k', v))

one('a key overwritten', m => m.set('k', 1), m => m.set('k', 2))
one('a key deleted', m => m.set('k', 1), m => m.delete('k'))
one('a key deleted and set again', m => m.set('k', 1), m => m.delete('k'), m => m.set('k', 3))
one('maps in maps', m => m.set('k', new Y.Map([['l', new Y.Map([['n', 1]])]])), m => m.get('k').get('l').set('o', 2))
one('a map in a map deleted', m => m.set('k', new Y.Map([['l', new Y.Text('x')]])), m => m.delete('k'))
one('an array', (_, a) => a.insert(0, [1, 'two', null]), (_, a) => a.insert(1, [{ x: 1 }]), (_, a) => a.delete(2, 1))
one('types in an array', (_, a) => a.push([new Y.Map([['k', 1]]), Y.Array.from([1, 2]), new Y.Text('t')]), (_, a) => a.delete(1))
one('bytes in an array', (_, a) => a.push([new Uint8Array([1, 2, 3])]))
one('a text', (_, __, t) => t.insert(0, 'hello'), (_, __, t) => t.insert(5, ' world'), (_, __, t) => t.delete(2, 5))
one('a text of emoji', (_, __, t) => t.insert(0, '😀😀👩‍🔬'), (_, __, t) => t.insert(2, 'é'), (_, __, t) => t.delete(3, 2))
one('a text formatted', (_, __, t) => t.insert(0, 'bold', { bold: true }), (_, __, t) => t.format(1, 2, { bold: null }))
one('a text with something embedded', (_, __, t) => t.insertEmbed(0, { image: 'x' }), (_, __, t) => t.insert(1, 'after'))
one('a text typed letter by letter', ...Array.from('typed', (c, i) => (_, __, t) => t.insert(i, c)))
one('XML', m => m.set('k', new Y.XmlElement('p')), m => m.get('k').insert(0, [new Y.XmlText('x')]), m => m.delete('k'))
one('a document in the document', m => m.set('k', new Y.Doc({ guid: 'g', autoLoad: true })), m => m.delete('k'))
one('undone and redone', m => m.set('k', 1), (m, _, __, doc) => {
  const undo = new Y.UndoManager(m)
  m.set('k', 2)
  undo.stopCapturing()
  doc.undo = undo
}, (_, __, ___, doc) => doc.undo.undo(), (_, __, ___, doc) => doc.undo.redo())

two('one key set twice', doc => doc.getMap('m').set('k', 0), doc => doc.getMap('m').set('k', 9), doc => doc.getMap('m').set('k', 5))
two('a new key set twice', () => {}, doc => doc.getMap('m').set('k', 9), doc => doc.getMap('m').set('k', 5))
two('set and deleted', doc => doc.getMap('m').set('k', 0), doc => doc.getMap('m').set('k', 9), doc => doc.getMap('m').delete('k'))
two('changed in what is deleted', doc => doc.getMap('m').set('k', new Y.Map()), doc => doc.getMap('m').get('k').set('l', 1), doc => doc.getMap('m').delete('k'))
two('two fields of one map', doc => doc.getMap('m').set('k', new Y.Map()), doc => doc.getMap('m').get('k').set('l', 1), doc => doc.getMap('m').get('k').set('n', 2))
two('typed in one place', doc => doc.getText('t').insert(0, '()'), doc => doc.getText('t').insert(1, 'nine'), doc => doc.getText('t').insert(1, 'five'))
two('typed in what is deleted', doc => doc.getText('t').insert(0, 'abcd'), doc => doc.getText('t').insert(2, '😀'), doc => doc.getText('t').delete(1, 2))
two('pushed at once', doc => doc.getArray('a').push([0]), doc => doc.getArray('a').push([9, 9]), doc => doc.getArray('a').push([5, 5]))

for (let seed = 101; seed <= 104; seed++) {
  const rnd = random(seed)
  const past = history(rnd)
  add(`history ${seed}`, past.updates)
  add(`history ${seed}, as a bad network brings it`, shuffle(rnd, past))
}

process.stdout.write('[\n' + vectors.map(v => JSON.stringify(v)).join(',\n') + '\n]\n')
