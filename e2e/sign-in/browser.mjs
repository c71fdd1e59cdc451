// A real browser on the pages of the server at argv[2], whose mails are in
// argv[3]: every page without scripts at 390 px, and past axe in light and
// dark. Pictures go to argv[4], if it is given.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { createHash, createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'
import { Person } from './person.mjs'

const [base, mailbox, pictures] = process.argv.slice(2)
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell', args: ['--no-sandbox'] })
const phone = { width: 390, height: 844 }

// link finds an address of ours in the newest mail to somebody, and waits for
// it: some go out after the answer.
async function link(to, kind) {
  let mail
  for (const until = Date.now() + 90_000; !mail && Date.now() < until; await page.waitForTimeout(50)) {
    const mails = readdirSync(mailbox).filter((f) => f.endsWith('.eml')).sort().reverse().map((f) => readFileSync(join(mailbox, f), 'utf8'))
    mail = mails.find((m) => m.includes(`To: <${to}>`) && m.includes(`${base}/${kind}/`))
  }
  assert.ok(mail, `no mail to ${to} with a link to /${kind}`)
  return `${base}/${kind}/` + mail.split(`${base}/${kind}/`)[1].match(/^\w+/)[0]
}

// check looks at a page in light and dark, on a second browser with scripts:
// the page as it stands, from our origin so that its style is there.
const mirror = await (await browser.newContext({ viewport: phone })).newPage()
let shown = ''
await mirror.route((url) => url.pathname === '/mirror', (r) => r.fulfill({ body: shown, contentType: 'text/html' }))

async function check(name, page) {
  shown = await page.content()
  await mirror.goto(`${base}/mirror`)
  await mirror.evaluate(axe)
  for (const colorScheme of process.env.MILLRACE_TEST_ALL || pictures ? ['light', 'dark'] : ['dark']) {
    await mirror.emulateMedia({ colorScheme })
    const overflow = await mirror.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    assert.ok(overflow <= 0, `${name} is ${overflow} px too wide for a phone`)
    const { violations } = await mirror.evaluate('axe.run()')
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [], `${name} in ${colorScheme}`)
    if (!pictures) continue
    await mirror.screenshot({ path: join(pictures, `${name}-${colorScheme}-phone.png`), fullPage: true })
    await mirror.setViewportSize({ width: 1280, height: 800 })
    await mirror.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) })
    await mirror.setViewportSize(phone)
  }
}

// The journey: a phone without scripts.
const context = await browser.newContext({ javaScriptEnabled: false, viewport: phone })
const page = await context.newPage()
page.on('console', (m) => assert.ok(!/Content Security Policy/.test(m.text()), m.text()))
const go = (path) => page.goto(path.startsWith('http') ? path : base + path)
// Every click leads to another page, which is there when it has loaded.
const follow = (element) => Promise.all([page.waitForEvent('load'), element.click()])
const press = (name) => follow(page.getByRole('button', { name, exact: true }))
const heading = async (text) => assert.match(await page.locator('h1').innerText(), text)

// signing up, with and without mistakes
await go('/sign-up?next=/sign-out')
await check('sign-up', page)
await page.fill('#name', '   ')
await page.fill('#email', 'ada@example.org')
await page.fill('#password', 'correct horse')
await press('Create account')
assert.match(await page.locator('#name-wrong').innerText(), /Name needs/)
await check('sign-up-wrong', page)
await page.fill('#name', 'Ada')
await page.fill('#password', 'correct horse')
await press('Create account')
await heading(/Sign out/)
await check('sign-out', page)
await press('Sign out')
await heading(/signed out/)
await check('signed-out', page)

// somebody who has an account
await go('/sign-up')
await page.fill('#name', 'Ada')
await page.fill('#email', 'ada@example.org')
await page.fill('#password', 'correct horse')
await press('Create account')
assert.match(await page.getByRole('alert').innerText(), /exists/)
await check('sign-up-taken', page)

// the address from the mail
await go(await link('ada@example.org', 'verify'))
await check('verify', page)
await press('Confirm')
await heading(/confirmed/)
await check('verified', page)

// a forgotten password
await go('/sign-in')
await follow(page.getByRole('link', { name: 'Forgot password?' }))
await check('reset', page)
await page.fill('#email', 'ada@example.org')
await press('Create link')
await check('reset-sent', page)
await go(await link('ada@example.org', 'reset'))
await check('new-password', page)
await page.fill('#password', 'another horse')
await press('Set password')
await check('password-changed', page)
await follow(page.getByRole('link', { name: 'Sign in' }))
await check('sign-in', page)
const elsewhere = await page.getByRole('link', { name: 'Sign in with orcid' }).boundingBox()
const here = await page.getByRole('button', { name: 'Sign in', exact: true }).boundingBox()
assert.deepEqual([elsewhere.x, elsewhere.width, elsewhere.height], [here.x, here.width, here.height], 'the ways to sign in look alike')
await page.fill('#email', 'ada@example.org')
await page.fill('#password', 'correct horse')
await press('Sign in')
await check('sign-in-wrong', page)
await page.fill('#password', 'another horse')
await press('Sign in')
assert.equal(page.url(), `${base}/`)

// a program on this computer: the answer goes to a port that listens
const program = await new Promise((ready) => {
  import('node:http').then(({ createServer }) => {
    const server = createServer((_, res) => res.end('<!doctype html><title>ok</title><link rel="icon" href="data:,">')).listen(0, '127.0.0.1', () => ready(server))
  })
})
const redirect = `http://127.0.0.1:${program.address().port}/callback`
const challenge = createHash('sha256').update(randomBytes(32).toString('hex')).digest('base64url')
const ask = `/oauth/authorize?${new URLSearchParams({ response_type: 'code', client_id: 'millrace-cli', redirect_uri: redirect, state: 'xyz', code_challenge: challenge, code_challenge_method: 'S256' })}`
await go(ask)
await check('consent', page)
await press('Allow')
assert.ok(page.url().startsWith(redirect) && new URL(page.url()).searchParams.get('code'), page.url())
await context.clearCookies()
await go(ask)
await heading(/Sign in/)
await page.fill('#email', 'ada@example.org')
await page.fill('#password', 'another horse')
await press('Sign in')
await heading(/Allow Millrace command line/)
await press('Deny')
assert.equal(new URL(page.url()).searchParams.get('error'), 'access_denied')
await go(ask.replace(encodeURIComponent(redirect), encodeURIComponent('https://evil.example/')))
await check('error', page)

// a device
const device = await (await fetch(`${base}/oauth/device_authorization`, { method: 'POST', body: new URLSearchParams({ client_id: 'millrace-cli' }) })).json()
await go('/device')
await check('device', page)
await page.fill('#user_code', 'bcdf ghjk')
await press('Continue')
await check('device-wrong', page)
await page.fill('#user_code', device.user_code.toLowerCase())
await press('Continue')
await check('device-confirm', page)
await press('Allow')
await heading(/connected/)
await check('device-allowed', page)

// an invitation, for somebody who has no account yet
const host = await new Person(base).signUp('Grace')
const proof = (await link('grace@example.org', 'verify')).split('/').pop()
await fetch(`${base}/auth/verify`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ token: proof }) })
await fetch(`${base}/api/team/invite`, { method: 'POST', headers: { authorization: `Bearer ${host.token}`, 'content-type': 'application/json' }, body: JSON.stringify({ email: 'eve@example.org', role: 'member' }) })
const invitation = await link('eve@example.org', 'invitations')
await go(invitation)
await check('invitation-other', page)
await context.clearCookies()
await go(invitation)
await check('invitation', page)
await follow(page.getByRole('link', { name: 'Create account' }))
assert.ok(!page.url().includes(invitation.split('/').pop()), 'the secret stands in another address')
await check('sign-up-invited', page)
await page.fill('#name', 'Eve')
await page.fill('#password', 'correct horse')
await press('Create account')
assert.ok(page.url().startsWith(`${base}/team/joined/team_`), 'the team of the invitation is active')
await go(invitation)
await check('invitation-accepted', page)

// an invitation, for somebody who has one
await fetch(`${base}/api/team/invite`, { method: 'POST', headers: { authorization: `Bearer ${host.token}`, 'content-type': 'application/json' }, body: JSON.stringify({ email: 'ada@example.org', role: 'admin' }) })
await context.clearCookies()
await go(await link('ada@example.org', 'invitations'))
await follow(page.getByRole('link', { name: 'Sign in' }))
await page.fill('#email', 'ada@example.org')
await page.fill('#password', 'another horse')
await press('Sign in')
await heading(/Join/)
await check('invitation-mine', page)
await press('Join the team')
assert.ok(page.url().startsWith(`${base}/team/joined/team_`), 'the team of the invitation is active')

// a second factor
const token = (await (await fetch(`${base}/auth/sign-in`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: 'ada@example.org', password: 'another horse' }) })).json()).data.token
const factor = async (body) => (await (await fetch(`${base}/auth/second-factor`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })).json()).data
const { secret } = await factor({ action: 'begin', password: 'another horse' })
const { recoveryCodes } = await factor({ action: 'confirm', code: code(secret) })
await context.clearCookies()
await go('/sign-in?next=//evil.example/')
await page.fill('#email', 'ada@example.org')
await page.fill('#password', 'another horse')
await press('Sign in')
await check('second-factor', page)
await page.fill('#code', '000000')
await press('Sign in')
await check('second-factor-wrong', page)
await page.fill('#code', recoveryCodes[0])
await press('Sign in')
assert.equal(page.url(), `${base}/`, 'it leads to another site')

// the sandbox's checkout and its invoice
const { url } = (await (await fetch(`${base}/api/billing/topup`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: '{"packageIndex":0}' })).json()).data
await go(url)
await check('checkout', page)
await follow(page.getByRole('button', { name: /^Pay/ }))
await check('checkout-paid', page)
await follow(page.getByRole('link', { name: 'View invoice' }))
await check('invoice', page)

await go('/nothing-here')
await check('not-found', page)
await browser.close()
program.closeAllConnections()
program.close()
console.log('all pages work')

function code(text) {
  const bits = [...text].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => Number.parseInt(b, 2)))
  const step = Buffer.alloc(8)
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30000)))
  const sum = createHmac('sha1', key).update(step).digest()
  return String((sum.readUInt32BE(sum[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}
