// Simulates docs/spec/charge.qnt as it is, and without each guard of the table in
// docs/spec/README.md, as `quint run` does, but the file is parsed once.
//
// usage: node check.js        a line for each; the status is 1 if one is not as expected
//        node check.js bind   the history of that one
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { load, parse, typecheck, runSimulator } = require('@informalsystems/quint/dist/src/cliCommands')

const folder = join(__dirname, '..', '..', '..', 'docs', 'spec')
const seed = 20261128, steps = 14, samples = 600, most = 5000
const row = /^\| `([a-z0-9-]+)` \|.*\| `(\w+)` \| I\d+ \| \d+ \|$/gm
const guards = [...readFileSync(join(folder, 'README.md'), 'utf8').matchAll(row)]

async function main(wanted) {
  const args = {
    input: join(folder, 'charge.qnt'), backend: 'typescript', step: 'step', maxSteps: steps, nTraces: 1,
    verbosity: wanted ? 2 : 0, witnesses: [], invariants: [],
  }
  const spec = await (await (await load(args)).asyncChain(parse)).asyncChain(typecheck)
  if (spec.isLeft()) throw new Error(spec.value.msg + ': ' + spec.value.stage.errors.map((e) => e.explanation).join(', '))
  // Returns the number of steps after which the invariant broke; 0: it held.
  const simulate = async (bug, invariant, maxSamples) => {
    const options = { ...args, init: `start("${bug}")`, invariant, maxSamples, seed: BigInt(seed) }
    const { value } = await runSimulator({ ...spec.value, args: options })
    const { status, trace } = value.stage.status ? value.stage : value
    if (status !== 'ok' && status !== 'violation') throw new Error(`${bug}: ${value.msg}`)
    return status === 'ok' ? 0 : trace.length - 1
  }
  if (wanted) {
    const guard = guards.find(([, bug]) => bug === wanted)
    if (!guard) throw new Error(`no guard ${wanted}: want one of ${guards.map(([, bug]) => bug).join(', ')}`)
    return simulate(wanted, guard[2], most)
  }
  let broken = await simulate('', 'safe', samples)
  console.log(`seed ${seed}, ${samples} histories of ${steps} steps: ${broken ? `broken after ${broken} steps` : 'safe holds'}`)
  for (const [, bug, invariant] of guards) {
    const found = await simulate(bug, invariant, most)
    console.log(`without ${bug}: ${invariant} ${found ? `broken after ${found} steps` : `holds in ${most} histories`}`)
    broken ||= !found
  }
  process.exitCode = broken ? 1 : 0
}

main(process.argv[2]).catch((e) => { console.error(e.message); process.exitCode = 1 })
