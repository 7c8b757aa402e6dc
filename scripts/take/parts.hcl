# What a project can have. Words and exceptions are regular expressions for text in lower
# case, in which `OutOfStock` and `out_of_stock` are "out of stock".
default = ["charge", "webhook", "reconcile"]

part "charge" {
  is = "SQS to a charged order: the protocol, the local system, Terraform, deployment"
  promises = "An order is charged once, for ever"
  guide = "docs/design.md"
  aws = "queue with dead letters, table, function, role, secret, 7 alarms"
  dollars = 1.37
  lines = 25000
}

part "webhook" {
  is = "Stripe's webhooks settle orders, and record disputes"
  promises = "An outcome that Stripe decides later is in the row within seconds"
  guide = "docs/guides/deploy.md"
  aws = "HTTP API, function, role, secret, 6 alarms"
  dollars = 1.10
  lines = 3951
  needs = ["charge"]
  words = ["webhook", "disput", "chargeback"]
  names = ["scripts/local/system.System.Heard", "scripts/local/system.System.startEvents", "scripts/local/system.Options.Deliveries",
    "scripts/local.killer.loses", "scripts/local.stages.deliveries",
    "adapters/stripe/stripetest.Event", "adapters/stripe/stripetest.eventOf", "adapters/stripe/stripetest.Machine.events", "adapters/stripe/stripetest.Machine.emit",
  ]
}

part "reconcile" {
  is = "a schedule rechecks the orders that wait, and settles them"
  promises = "An outcome is in the row within a day, also without webhooks"
  guide = "docs/guides/operate.md"
  aws = "schedule, function, role, 6 alarms"
  dollars = 0.94
  lines = 2583
  needs = ["charge"]
  words = ["reconcil", "all-due", "orders.wait.too.long", "scheduler", "role of the schedule", "same for the schedule", "run of the schedule"]
  names = ["scripts/orders.dueReport", "scripts/orders.dueOutcome", "scripts/orders.dueError",
    "domain/order/ordertest.postpone", "scripts/orders.refresh.AllDue", "scripts/orders.refresh.Rate", "scripts/orders.refresh.Validate",
    "scripts/local/system.System.Look", "scripts/local/system.System.LookAll",
  ]
}

part "publish" {
  is = "the events of orders on an EventBridge bus"
  promises = "Each event is sent at least once, in order for each order"
  guide = "docs/guides/hear-about-orders.md"
  aws = "event bus with archive, stream, function, role, 3 alarms"
  dollars = 0.40
  lines = 3727
  needs = ["charge"]
  words = ["publish", "outbox", "event ?bridge", "\\bbus\\b", "dynamodb/stream", "put events", "hear about orders", "subscriber misses", "producer rule", "example subscriber", "event archive", "paid queue", "(?m:^## events$)"]
  names = ["scripts/local/system.System.stream", "scripts/local/system.Options.RefuseEvent", "scripts/invariants.Books.DeadEvents"]
  paths = ["adapters/dynamodb/stream/**", "scripts/local/system/stream.go", "examples/consumer/**", "docs/guides/hear-about-orders.md", "docs/reference/events.md", "docs/reference/events/**"]
}

part "refund" {
  is = "money back, from a queue of its own"
  promises = "Given back once while Stripe keeps the key; then a person decides"
  guide = "docs/guides/refund.md"
  aws = "queue with dead letters, function, role, 4 alarms"
  dollars = 0.76
  lines = 12136
  needs  = ["charge"]
  words  = ["refund", "every write needs the claim", "money went back", "more back than charged"]
  except = ["charges and refunds: read"] # a permission of Stripe
  names  = ["adapters/dynamodb.Guards.Inner", "adapters/dynamodb.expressions.within", "scripts/orders/view.OrderJSON.ByOthers", "scripts/invariants.Order.Outside", "scripts/invariants.Order.Left"]
}

part "http" {
  is = "orders by HTTP, with an OpenAPI document"
  promises = "An accepted order reaches the queue at least once"
  guide = "docs/reference/http.md"
  aws = "HTTP API, function, role, 1 alarm"
  dollars = 0.20
  lines = 4245
  needs = ["charge"]
  words = ["intake", "registration", "openapi", "by http\\b", "status not.sent"]
  names = ["scripts/orders.erase.Caller", "scripts/local/system.System.put", "scripts/local/system.System.requests", "scripts/invariants.Books.Requests", "scripts/invariants.Request"]
  paths = ["examples/http.jsonl", "docs/reference/http.md", "scripts/local/entrance.go"]
}

part "stock" {
  is = "stock is reserved before the charge, in the order's transaction"
  promises = "No unit is sold twice, and none stays reserved for ever"
  guide = "docs/guides/stock.md"
  aws = "table"
  dollars = 0.00
  lines = 3330
  needs  = ["charge"]
  words  = ["stock", "unknown.sku"]
  names  = ["domain/order.Claim.Short", "domain/order.Claim.Unlisted", "domain/order.errShort", "domain/order.errUnknownSKU", "domain/order.ShortError", "domain/order.ReasonUnknownSKU", "scripts/orders.list.Holding", "scripts/invariants.Books.Delivered",
    "domain/settle.HintFreed", "domain/settle.Reconciler.CancelDeclined", "domain/settle.Paced.Canceler", "domain/settle.Paced.CancelIntent",
    "functions/reconcile.environment.Hold", "functions/reconcile.environment.freeTime", "functions/reconcile.newCancelDeclined",
  ]
}

part "receipt" {
  is = "one e-mail for each payment"
  promises = "Sent at most once, and every doubt is listed"
  guide = "docs/guides/receipts.md"
  aws = "queue with dead letters, rule, function, role, SES events, table, 4 alarms"
  dollars = 0.66
  lines = 5033
  needs  = ["charge", "publish"]
  words  = ["receipt", "\\bmail", "e-?mail", "\\bses(v2)?\\b", "sestest"]
  names  = ["adapters/stripe/stripetest.Machine.customer", "scripts/invariants.Books.AtLeastOnce"]
  except = ["receipt handle"]
  paths  = ["adapters/stripe/payer/**"]
}

part "audit" {
  is = "the operator compares the table with Stripe, restores a damaged table, watches, erases a person"
  promises = "Every difference of table and Stripe has a name and a command"
  guide = "docs/guides/audit.md"
  aws = "none"
  dollars = 0.00
  lines = 3831
  needs = ["charge"]
  except = ["no.audit"]
  words = ["\\baudit", "salvage", "table.was.restored", "from-table", "from table"]
  names = ["scripts/orders.restore.FromTable", "scripts/orders.restore.Status", "scripts/orders.restore.TableRate", "scripts/orders.restore.Validate"]
}

part "verify" {
  is = "the operator checks the invariants on what happened to each order, in production or in files"
  promises = "Each finding comes with the timeline of its order"
  guide = "docs/guides/audit.md"
  aws = "none"
  dollars = 0.00
  lines = 1500
  needs = ["charge", "webhook", "reconcile", "publish", "refund", "receipt", "audit"] # whose rows, objects, events and lines it reads
  words = ["orders verify", "orders/verify", "^== verify", "verify history", "verify what happened", "`verify`", "wrong ?by ?verify"]
  names = ["scripts/orders.auditFixture.verified", "scripts/orders.verifyHistory", "scripts/orders.commands.Verify"]
  paths = ["scripts/orders/verify/**", "scripts/orders/verify.go", "scripts/orders/cloud/history.go"]
}

part "settings" {
  is = "each function compares its queues' settings with what it was built for"
  promises = "A queue that would lose messages raises an alarm"
  guide = "docs/reference/configuration.md"
  aws = "4 alarms with alarms = \"all\""
  dollars = 0.00
  lines = 502
  needs = ["charge"]
}

part "fifo" {
  is = "queues may be FIFO, or fair: messages keep their group"
  promises = "In a FIFO group no message overtakes another"
  guide = "docs/guides/deploy.md"
  aws = "none"
  dollars = 0.00
  lines = 350
  needs = ["charge"]
}

part "kms" {
  is = "queues, tables and secrets are encrypted with your own KMS key"
  promises = "No plan removes a key that a message still needs"
  guide = "docs/guides/operate.md"
  aws = "a policy of each role"
  dollars = 0.00
  lines = 374
  needs = ["charge"]
  words = ["\\bkms", "use kms"]
}

part "topic" {
  is = "SNS topics and rules of EventBridge may send orders: the message in its wrapper"
  promises = "A wrapped order is the same order"
  guide = "docs/reference/message.md"
  aws = "none"
  dollars = 0.00
  lines = 138
  needs = ["charge"]
}

part "trace" {
  is = "the trace of the producer is in log lines, rows and events; X-Ray traces invocations"
  promises = "One id finds an order everywhere"
  guide = "docs/reference/message.md"
  aws = "none"
  dollars = 0.00
  lines = 333
  needs = ["charge"]
}

part "scale" {
  is = "pollers are provisioned, and a new table is warm: for more than 600 orders a second"
  promises = "The first second of a burst is not throttled"
  guide = "docs/guides/deploy.md"
  aws = "none"
  dollars = 0.00
  lines = 138
  needs = ["charge"]
  words = ["provisioned.pollers?", "provisioned poller", "pollers replace", "per.poller", "warm.throughput", "pre.warm"]
}

part "dashboard" {
  is = "a CloudWatch dashboard: a row of charts for each question"
  promises = "Each question has three charts"
  guide = "docs/guides/deploy.md"
  aws = "dashboard"
  dollars = 3.00
  lines = 339
  needs = ["charge"]
  words = [
    "create.dashboard", "dashboards: 3", "cloud ?watch.dashboard", "orderonce\\.dashboard", "(delete|get|put).?dashboards?", ":dashboard/",
  ]
  paths = ["infra/terraform/modules/orderonce/dashboard.tf"]
}

part "deployer" {
  is = "a policy for the principal that deploys, with no more than it needs"
  promises = "It covers each type of resource of the module, and no other"
  guide = "docs/reference/iam.md"
  aws = "none"
  dollars = 0.00
  lines = 190
  needs = ["charge"]
  words = ["deployer.policy", "principal.that.deploys"]
  paths = ["infra/deployer-policy.json"]
}

part "release" {
  is = "a tag builds, attests and publishes the zips; Terraform takes them from a bucket, for one shop or several"
  promises = "Two builds of a tag have the same bytes"
  guide = "docs/guides/upgrade.md"
  aws = "none"
  dollars = 0.00
  lines = 164
  needs = ["charge"]
  words = ["(?m:^## releases$)", "make notes", "release note", "notes.md", "gh (release|attestation)", "\\battested\\b", "workflows/release", "cyclone ?dx", "bills? of materials", "\\.cdx\\.json", "\\bbom\\b", "package.s3", "zips? (can be )?in a bucket", "\\bs3 (bucket|key|base64)", "examples/terraform", "without go, and from a repository"]
  names = ["scripts/package.commands.Notes", "scripts/package.notes", "scripts/package/release.TestTwoBuildsInTwoFoldersMakeTheSameBytes"]
  paths = [".github/workflows/release.yml", "scripts/package/release/notes*.go", "scripts/package/release/bom*.go", "examples/terraform/**"]
}

part "job" {
  is = "make new-job writes a second job of one of four kinds"
  guide = "docs/guides/adapt.md"
  aws = "none"
  dollars = 0.00
  lines = 1862
  needs = ["charge"]
  words = ["new-?job", "adapt\\.md", "reference/providers\\.md", "examples/label"]
  paths = ["docs/guides/adapt.md", "docs/reference/providers.md"]
}

part "lab" {
  is = "searches, storms, planted bugs, drills, the tests of the doubles"
  guide = "scripts/lab/README.md"
  aws = "none"
  dollars = 0.00
  lines = 38956 # with page
  needs = ["charge", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit", "verify", "kms", "scale", "dashboard", "deployer", "job", "page"]
  words = [
    "scripts/lab", "^ *lab/", "^scripts/%/", "command of a page", "^ *searches *:=", "one world after the other", "stripe.?mock", "make (break|prove|storm|mutate|drill|bench)", "\\bdrill", "simulation", "planted", "gremlins",
    "\\bstorm", "what a page shows as output",
    "make (proof|refund|grow)-page", "make grow", "make spec", "docs/spec", "spec/readme", "charge\\.qnt", "quint", "make conform", "scripts/conform", "conform(ance)?\\.(md|json)", "\\b(grow|performance)\\.md", "^lab *:= *$", "test-long",
    "benchstat", "bench.test", "test ?costs",
    "stage.knows.no.scenario", "lab/stage", "conform\\|take", "time of a world", "attack leaves behind", "slow test asks", "interrupted ?run ?continues",
    "with every part,", "scripts test \\./infra", "begin tf docs", "end tf docs", "(?m:^## (requirements|providers|modules|resources|inputs|outputs)$)", # of the module, which scripts/infra writes
  ]
  paths = ["adapters/stripe/stripemock_test.go", "scripts/conform/**", "docs/spec/**", "docs/guides/conform.md", "docs/reference/conformance.*", "docs/reference/proof*.md", "docs/storm.svg", "docs/grow.svg", "docs/performance.svg", "docs/reference/performance.md", "docs/guides/grow.md", "docs/reference/refund-proof.md", "docs/reference/guards.md", "scripts/local/incidents/[^m]*.go",
    "scripts/local/drill*.go", "scripts/local/docs_linux_test.go", "scripts/local/mermaid_test.go",
    "scripts/orders/sessions_test.go", "scripts/orders/runbooks_test.go",
    "domain/*/*test/*_test.go", "adapters/*/*test/*_test.go", "adapters/lambda/lambdatest/internal/**", "adapters/sqs/fuzz_test.go", "adapters/internal/strictjson/fuzz_test.go",
    "domain/order/example_test.go", "domain/order/bench_test.go", "adapters/*/bench_test.go", "adapters/sqs/orders/bench_test.go", "domain/order/ordertest/cost*.go", "scripts/invariants/*_test.go", "scripts/infra/**", "house_test.go", "docs/faq.md", "docs/tour.md",
  ]
}

part "page" {
  is = "the live page: attack the system in a browser"
  guide = "docs/guides/live.md"
  aws = "none"
  dollars = 0.00
  lines = 38956 # with lab
  needs = ["charge", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit", "verify", "kms", "scale", "dashboard", "deployer", "job", "lab"] # it takes guards away
  except = ["```console"]
  names = ["adapters/lambda/lambdatest.Host.observing"]
  words = ["console", "live page", "local/\\(?page\\b", "make up\\b", "build/up\\b", "browser", "screenshot", "chromium"]
  paths = ["docs/images/**", "docs/tutorial.md", "docs/guides/live.md", "scripts/local/up.go", "scripts/local/page.go", "scripts/local/gate*.go"]
}

# What several parts have goes with the last of them.
shared "operator" {
  of = ["webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit"]
  words = [
    "make (orders|smoke)\\b", "program,orders", "scripts/orders", "operator", "runbooks\\.md", "runbook [0-9]", "has the verdict", "which verdict", "message a verdict", "dead-letters (list|show|redrive|discard)", "(redrive|discard) --", "reference/orders\\.md", "orders --version", "a person waits for an answer", "(?m:^## (close an order|erase a person)$)", "close-an-order", "\\bcanceler\\b", "cancel intent", "order.cancellation", "cancel key", "cancel promises",
    "\\borders (show|list|post|check|smoke|refresh|cancel|restore|watch|erase|dead.letters|help|json|scope)",
  ]
  except = ["comparison operator"] # of an alarm
  names = ["domain/order.Settle", "domain/order.world.stale", "domain/order/ordertest.cancel", "domain/order/ordertest.Cancel", "scripts/local.local.attend", "scripts/local.local.cancelUncharged"]
  paths = ["scripts/orders/**", "domain/order/cancel*.go", "domain/settle/**", "docs/reference/orders.md", "docs/guides/runbooks.md"]
}

shared "http api" {
  of = ["webhook", "http"]
  names = ["scripts/local/system.System.startAPI"]
  words = ["api ?gateway", "http ?api", "trigger over http\\b", "callers of the api", "strangers"]
}

shared "optional parts" { # of Terraform
  of = ["webhook", "publish", "refund", "http", "stock", "receipt", "kms"]
  words = ["no optional part exists", "without the optional parts"]
}

shared "attributes of tasks" {
  of = ["refund", "receipt", "job"]
  names = ["adapters/sqs.Task.Attrs", "adapters/sqs.TestATaskNeedsNoMoreThanRun"]
}

shared "kinds of effects" {
  of = ["refund", "stock", "receipt"]
  words = ["four kinds of effects"]
}

shared "settlement" {
  of = ["webhook", "reconcile"]
  words = ["(?m:^## after the charge$)"]
  names = ["scripts/local.local.later", "scripts/local.victim.lost", "scripts/local/system.System.Purge"]
}

shared "stripe list" {
  of = ["audit", "page", "lab"]
  names = ["adapters/stripe/stripetest.List"]
}

shared "stripe key" {
  of = ["webhook", "reconcile", "receipt"]
  words = ["stripe read", "read-only key"]
}

shared "settings" {
  of = ["settings", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit"] # the operator's tool and its tests know it
  words = ["queue.settings", "queues. settings", "settings of the queues", "queue.?misconfigured", "queues are misconfigured", "settings check", "what is compared with the queues"]
  names = ["adapters/sqs.Handler.Settings", "adapters/sqs.settingsOf", "functions/order.settings"]
  paths = ["adapters/sqs/settings*.go"]
}

shared "fifo" {
  of = ["fifo", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit"] # the operator's tool and its tests know it
  words = ["fifo", "queue type", "message.group", "undedup", "deduplication (id|scope|interval)", "content based dedup", "deduplicates what is \\*sent"]
  names = ["adapters/sqs.Delivery.Group", "adapters/sqs/sqstest.Draft.Group"]
}

shared "topic" {
  of = ["topic", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit", "job"] # as of fifo
  words = ["producer.topic", "topics ?send\\b", "sending.service", "a topic to which", "sns may have wrapped"]
  names = ["adapters/sqs/internal/bodytest.FromSNS", "adapters/sqs/internal/bodytest.FromEventBridge"]
  paths = ["adapters/sqs/envelope*.go"]
}

shared "trace" {
  of = ["trace", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit", "job"] # as of fifo
  words = ["trace ?parent", "\\btrac(e|es|ing)\\b", "x-ray", "xray"]
  except = ["panic's trace", "panic with its trace", "trace names this file", "runtime-trace-id"]
}

shared "queue operations" {
  of = ["settings", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit"] # the operator's tool and its tests call them
  words = ["operations\\.go", "only receive ?message waits", "md5 ?of ?message ?attributes"]
  names = ["adapters/sqs/sqstest.Draft.check", "adapters/sqs/sqstest.Attribute.check"] # a function of ours sends what it received
  paths = ["adapters/sqs/sqstest/operations.go", "adapters/sqs/orders/encode*.go"]
}

shared "redrive" {
  of = ["page", "lab"]
  names = [
    "adapters/sqs/sqstest.Machine.Redrive", "adapters/sqs/sqstest.Counts.Redriven", "adapters/sqs/sqstest.startMessageMoveTask",
    "adapters/sqs/sqstest.Machine.move", "scripts/local/system.System.Redrive",
  ]
}

shared "chance" { # what makes a queue less kind than it could be
  of = ["page", "lab"]
  words = ["a duplicate in the same batch", "lose ?delete", "sent \\+ arrived"]
  names = [
    "adapters/sqs/sqstest.Machine.Pick", "adapters/sqs/sqstest.Mapping.Duplicate", "adapters/sqs/sqstest.Mapping.LoseDelete",
    "adapters/sqs/sqstest.Batch.Lost", "scripts/local/system.Options.Duplicate", "scripts/local/system.Options.LoseDelete",
    "adapters/sqs/sqstest.Counts.Sent", "adapters/sqs/sqstest.Counts.Arrived", "adapters/sqs/sqstest.Counts.Deleted",
    "adapters/sqs/sqstest.Counts.Expired", "adapters/sqs/sqstest.Counts.DeadLettered",
  ]
  paths = ["adapters/sqs/sqstest/twice.go"]
}

shared "amounts" { # Stripe's list a second time
  of = ["page", "lab"]
  names = [
    "adapters/stripe/stripetest.checkCurrency",
    "adapters/stripe/charge.TestTheDomainAndTheStripeDoubleHaveTheSameLimits",
  ]
}

shared "leaks" { # without it, the canaries of package system search every output
  of = ["page", "lab", "verify"]
  names = ["scripts/invariants.Books.leaks", "scripts/invariants.Books.Secrets", "scripts/invariants.Books.Log"]
  paths = ["scripts/invariants/leak.go"]
}

# What attacks and measures the local system.
shared "attack" {
  of = ["page", "lab"]
  words = ["freeze moves it", "first cause stays", "cpu time and memory", "and of the report"]
  names = [
    "adapters/lambda/lambdatest.Report", "adapters/lambda/lambdatest.Host.observe", "adapters/lambda/lambdatest.Host.ends", "adapters/lambda/lambdatest.instance.sample", "adapters/lambda/lambdatest.instance.peakRSS",
    "adapters/lambda/lambdatest.Event", "adapters/lambda/lambdatest.Change", "adapters/lambda/lambdatest.Host.note", "adapters/lambda/lambdatest.Host.events", "adapters/lambda/lambdatest.Host.publish", "adapters/lambda/lambdatest.Options.Observe",
    "adapters/lambda/lambdatest.Host.resume", "adapters/lambda/lambdatest.instance.frozen", "adapters/lambda/lambdatest.instance.cause", "adapters/lambda/lambdatest.instance.number", "adapters/lambda/lambdatest.Host.starts", "adapters/lambda/lambdatest.instance.began",
    "adapters/lambda/lambdatest.Host.Replace",
    "adapters/dynamodb/dynamodbtest.Fault.Delay", "adapters/dynamodb/dynamodbtest.Fault.Number", "adapters/dynamodb/dynamodbtest.Fault.Match", "adapters/dynamodb/dynamodbtest.Fault.Operation",
    "adapters/dynamodb/dynamodbtest.Call.Status", "adapters/dynamodb/dynamodbtest.Call.Response", "adapters/dynamodb/dynamodbtest.Call.Lost", "adapters/dynamodb/dynamodbtest.callbacks.observe", "adapters/dynamodb/dynamodbtest.callbacks.after", "domain/order/ordertest.Memory.Clone",
    "adapters/stripe/stripetest.LockTimeout", "adapters/stripe/stripetest.KeyInUse", "adapters/stripe/stripetest.Decline", "adapters/stripe/stripetest.Latency", "adapters/stripe/stripetest.SlowSuccess", "adapters/stripe/stripetest.Garbage",
    "adapters/stripe/stripetest.Fault.Delay", "adapters/stripe/stripetest.Fault.Number", "adapters/stripe/stripetest.Machine.Delays", "adapters/stripe/stripetest.Machine.endFaults", "adapters/stripe/stripetest.Response.Garbled", "adapters/stripe/stripetest.Request.Number", "adapters/stripe/stripetest.Server.wait",
    "adapters/stripe/stripetest.Machine.DeleteCustomer", "adapters/stripe/stripetest.Machine.DetachMethod", "adapters/stripe/stripetest.Machine.gone",
    "adapters/stripe/stripetest.Call.answered", "adapters/stripe/stripetest.Call.Method", "adapters/stripe/stripetest.Call.Path", "adapters/stripe/stripetest.Call.Intent", "adapters/stripe/stripetest.Call.Key", "adapters/stripe/stripetest.Call.Status", "adapters/stripe/stripetest.Call.Result", "adapters/stripe/stripetest.Call.Request", "adapters/stripe/stripetest.Call.Replayed", "adapters/stripe/stripetest.Call.Lost", "adapters/stripe/stripetest.Response.result",
    "scripts/local/system.System.OnClose", "scripts/local/system.Options.BeforeStripe", "adapters/stripe/stripetest.Options.Before", "scripts/local/system.Options.ObserveInstance", "scripts/local/system.Options.Travels",
    "scripts/local/system.world.shared",
    "scripts/invariants.Books.Lines", "scripts/invariants.Books.Ended", "scripts/invariants.Books.lostAcks", "scripts/invariants.Books.conflictsDone", "scripts/invariants.Books.unsettled",
  ]
}

never "origin" {
  except = ["nolint:unparam.*"]
  words = [
    "make new(?:[^\\w-]|$)", "make (projects|parts|learn)\\b", "examples/steps", "scripts/take", "decisions\\.md", "rooms\\.md",
    "each room keeps its budget", "system/upgrade test", "upgrade under way", "archive and a shallow clone",
    "tried once, in an emulator", "not tried: a real", "moved\\.tf", "from a commit before it", "deployed.scope", "deployed order function", "(of|than) the deployed function", "aws lambda functions\\b", "aws lambda function.deployed", "lambda:list functions", # states of before a project
    "unparam", # a parameter or result may have lost its other users
  ]
  paths = [
    "README.md", "CHANGELOG.md", ".github/ISSUE_TEMPLATE/**", ".github/workflows/parts.yml", "scripts/take/**", "rooms_test.go", "docs/reference/rooms.md", "docs/decisions.md", "docs/parts.md", "docs/guides/take.md",
    "scripts/local/system/upgrade_test.go", # it needs the history of the clone
    "examples/label/**", "examples/existing/**", "examples/steps/**", "docs/build/**", "docs/compare.md", "docs/guides/existing.md", "scripts/newjob/example_test.go",
    "infra/terraform/moved.tf.json",
  ]
}
