'use strict'
// Which methods of a client a script has called, to show that it leaves none out.

const assert = require('node:assert/strict')

class Recorder {
  constructor() {
    this.called = new Set()
  }

  watch(client) {
    const { called } = this
    return new Proxy(client, {
      get(target, name) {
        called.add(name)
        const value = target[name]
        return typeof value === 'function' ? value.bind(target) : value
      }
    })
  }

  assertAll(names) {
    assert.deepEqual(names.filter(name => !this.called.has(name)), [], 'never called')
  }
}

module.exports = { Recorder }
