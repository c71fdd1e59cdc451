// openid-client, as it comes, through every flow of the server at argv[2].
import assert from 'node:assert/strict'
import * as oauth from 'openid-client'
import { Person } from './person.mjs'

const base = process.argv[2]
const me = async (token) => (await fetch(`${base}/api/me`, { headers: { authorization: `Bearer ${token}` } })).status

const config = await oauth.discovery(new URL(base), 'millrace-cli', undefined, oauth.None(), {
  algorithm: 'oauth2',
  execute: [oauth.allowInsecureRequests],
})
const ada = await new Person(base).signUp('ada-of-node')

// authorization code with PKCE
const verifier = oauth.randomPKCECodeVerifier()
const state = oauth.randomState()
const redirect = 'http://127.0.0.1:49152/callback'
const ask = oauth.buildAuthorizationUrl(config, {
  redirect_uri: redirect,
  scope: 'user',
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  state,
})
assert.equal((await ada.open(ask)).status, 200)
const allowed = await ada.submit(ask, { decision: 'allow' })
assert.equal(allowed.status, 303)
const answer = new URL(allowed.headers.get('location'))
await assert.rejects(oauth.authorizationCodeGrant(config, answer, { pkceCodeVerifier: oauth.randomPKCECodeVerifier(), expectedState: state }), { error: 'invalid_grant' })
const tokens = await oauth.authorizationCodeGrant(config, answer, { pkceCodeVerifier: verifier, expectedState: state })
assert.match(tokens.access_token, /^oat_/)
assert.equal(await me(tokens.access_token), 200)

// refresh, and what becomes of an old token
const fresh = await oauth.refreshTokenGrant(config, tokens.refresh_token)
assert.equal(await me(fresh.access_token), 200)
await assert.rejects(oauth.refreshTokenGrant(config, tokens.refresh_token), { error: 'invalid_grant' })
assert.equal(await me(fresh.access_token), 401)

// device: denied, then allowed
const denied = await oauth.initiateDeviceAuthorization(config, {})
assert.equal((await ada.submit(denied.verification_uri, { user_code: denied.user_code, decision: 'deny' })).status, 200)
await assert.rejects(oauth.pollDeviceAuthorizationGrant(config, { ...denied, interval: 0 }), { error: 'access_denied' })
const device = await oauth.initiateDeviceAuthorization(config, {})
assert.equal((await ada.open(device.verification_uri_complete)).status, 200)
assert.equal((await ada.submit(device.verification_uri, { user_code: device.user_code, decision: 'allow' })).status, 200)
const onDevice = await oauth.pollDeviceAuthorizationGrant(config, { ...device, interval: 0 })
assert.equal(await me(onDevice.access_token), 200)

// revocation
await oauth.tokenRevocation(config, onDevice.refresh_token)
assert.equal(await me(onDevice.access_token), 401)
await assert.rejects(oauth.refreshTokenGrant(config, onDevice.refresh_token), { error: 'invalid_grant' })
console.log('all flows work')
