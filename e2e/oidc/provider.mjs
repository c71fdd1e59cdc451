// oidc-provider, with its own pages, on a port that the system chooses. It
// prints its issuer once it listens. Its pages take any password.
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { Provider } from 'oidc-provider'

const people = {
  'ada@example.org': { name: 'Ada', email_verified: true },
  'bob@example.org': { name: 'Bob', email_verified: true },
  'carol@example.org': { name: 'Carol', email_verified: false },
}

function findAccount(_, id) {
  const person = people[id]
  return person && { accountId: id, claims: () => ({ sub: id, email: id, ...person }) }
}

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

const server = createServer()
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'millrace',
        client_secret: 'a secret of tests',
        redirect_uris: ['http://127.0.0.1:8080/auth/oidc/institute/callback'],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    findAccount,
  })
  server.on('request', provider.callback())
  console.log(`issuer ${issuer}`)
})
