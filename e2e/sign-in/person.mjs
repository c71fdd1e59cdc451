// A person with a browser that keeps one cookie, as far as fetch goes.
export class Person {
  constructor(base) {
    this.base = base
    this.cookie = ''
  }

  async signUp(name) {
    const r = await fetch(`${this.base}/auth/sign-up`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: `${name}@example.org`, password: 'correct horse', name }),
    })
    if (r.status !== 201) throw new Error(`sign-up: ${r.status} ${await r.text()}`)
    this.cookie = r.headers.get('set-cookie').split(';')[0]
    this.token = (await r.json()).data.token
    return this
  }

  // submit posts a form and returns the answer without following it.
  submit(url, fields) {
    return fetch(url, { method: 'POST', body: new URLSearchParams(fields), headers: { cookie: this.cookie }, redirect: 'manual' })
  }

  open(url) {
    return fetch(url, { headers: { cookie: this.cookie }, redirect: 'manual' })
  }
}
