#!/usr/bin/env node
// Runs the program of this platform's package in its own place: arguments, streams, signals and exit code pass through.
'use strict'

const { spawn } = require('node:child_process')
const { constants } = require('node:os')
const { isatty } = require('node:tty')
const packages = Object.keys(require('../package.json').optionalDependencies)

// What shells say of a command that cannot be found, and of one that cannot be run.
const NOT_FOUND = 127
const NOT_RUN = 126
// What a terminal sends to all programs that run in it. Passed on, it would come twice, and a second Ctrl-C ends at once.
const FROM_TERMINAL = ['SIGINT', 'SIGQUIT', 'SIGHUP']
const PASSED_ON = [...FROM_TERMINAL, 'SIGTERM', 'SIGUSR2']

function findProgram () {
  const platform = `${process.platform}-${process.arch}`
  const name = packages.find(name => name.endsWith(`/${platform}`))
  const file = process.platform === 'win32' ? 'contexture.exe' : 'contexture'
  try {
    return require.resolve(`${name}/bin/${file}`)
  } catch {
    const supported = packages.map(name => name.slice(name.indexOf('/') + 1)).join(', ')
    const why = name === undefined
      ? `there is no package for ${platform}; supported: ${supported}`
      : `the package ${name} is not installed; install again without leaving out optional dependencies`
    console.error(`contexture: ${why}`)
    process.exit(NOT_FOUND)
  }
}

function run (program) {
  const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' })
  const hasTerminal = [0, 1, 2].some(isatty)
  for (const signal of PASSED_ON) {
    const isSentToBoth = hasTerminal && FROM_TERMINAL.includes(signal)
    // Even where nothing is passed on this process must stay until the program has ended.
    process.on(signal, () => isSentToBoth || child.kill(signal))
  }
  child.on('error', error => {
    console.error(`contexture: ${program} cannot be run: ${error.message}`)
    process.exit(NOT_RUN)
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code)
    // Ends as the program did. The exit code is for signals that do not end this process.
    process.exitCode = 128 + constants.signals[signal]
    PASSED_ON.forEach(name => process.removeAllListeners(name))
    process.kill(process.pid, signal)
  })
}

run(findProgram())
