// The official client, unmodified, against a running proxy:
//   node try.mjs <base url> <token> <token of somebody without quota>
// The model behind answers by what it is told: "tool", "stumble", "refuse",
// "break"; else it greets.
import assert from 'node:assert/strict'
import OpenAI from 'openai'

const [baseURL, apiKey, spent] = process.argv.slice(2)
const client = new OpenAI({ baseURL, apiKey })
const ask = (content, more = {}) => client.chat.completions.create({ model: 'gpt-4o', messages: [{ role: 'user', content }], ...more })
const tools = [{ type: 'function', function: { name: 'flow', parameters: { type: 'object', properties: { river: { type: 'string' } } } } }]

const plain = await ask('hi')
assert.equal(plain.choices[0].message.content, 'Good day to you')
assert.equal(plain.model, 'hosted-1')
assert.equal(plain.usage.prompt_tokens, 11)

let text = ''
let chunks = 0
for await (const chunk of await ask('hi', { stream: true })) {
  text += chunk.choices[0].delta.content ?? '' // throws on a chunk without choices
  chunks++
}
assert.equal(text, 'Good day to you')
assert.equal(chunks, 5)

let usage
for await (const chunk of await ask('hi', { stream: true, stream_options: { include_usage: true } })) usage = chunk.usage ?? usage
assert.equal(usage.total_tokens, 16)

const called = await ask('tool', { tools })
assert.equal(called.choices[0].finish_reason, 'tool_calls')
assert.deepEqual(JSON.parse(called.choices[0].message.tool_calls[0].function.arguments), { river: 'Leat' })

const runner = client.chat.completions.stream({ model: 'x', messages: [{ role: 'user', content: 'tool' }], tools })
const final = await runner.finalChatCompletion()
assert.equal(final.choices[0].message.tool_calls[0].function.name, 'flow')

assert.equal((await ask('stumble')).choices[0].message.content, 'Good day to you') // tried again by itself

await assert.rejects(ask('refuse'), (e) => e instanceof OpenAI.BadRequestError && e.status === 400 && e.code === 'model_refused' && !/upstream/.test(e.message))
await assert.rejects(ask('hi', { messages: [] }), (e) => e instanceof OpenAI.BadRequestError && /at least one message/.test(e.message))
await assert.rejects(async () => {
  for await (const _ of await ask('break', { stream: true }));
}, (e) => e instanceof OpenAI.APIError && e.code === 'model_unavailable')

const stranger = new OpenAI({ baseURL, apiKey: 'nonsense' })
await assert.rejects(stranger.models.list(), (e) => e.status === 404)
await assert.rejects(stranger.chat.completions.create({ model: 'x', messages: [{ role: 'user', content: 'hi' }] }), (e) => e instanceof OpenAI.AuthenticationError)

const poor = new OpenAI({ baseURL, apiKey: spent })
await assert.rejects(poor.chat.completions.create({ model: 'x', messages: [{ role: 'user', content: 'hi' }] }),
  (e) => e instanceof OpenAI.RateLimitError && e.code === 'fair_use_exhausted' && e.headers.get('retry-after') > 0)

const leaving = await ask('hi', { stream: true })
for await (const _ of leaving) break // leaves after the first chunk
console.log('done')
