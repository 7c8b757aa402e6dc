# What a project can have. Words and exceptions are regular expressions for text in lower
# case, in which `OutOfStock` and `out_of_stock` are "out of stock".
default = ["charge", "webhook", "reconcile"]

part "charge" {
  is = "SQS to a charged order: the protocol, the local system, Terraform, deployment"
  promises = "An order is charged once, for ever"
  guide = "docs/design.md"
  aws = "queue with dead letters, table, function, role, secret, 7 alarms, dashboard"
  dollars = 4.37
  lines = 28861
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
  names = ["scripts/local/system.System.Heard"]
}

part "reconcile" {
  is = "a schedule rechecks the orders that wait, and settles them"
  promises = "An outcome is in the row within a day, also without webhooks"
  guide = "docs/guides/operate.md"
  aws = "schedule, function, role, 6 alarms"
  dollars = 0.94
  lines = 2583
  needs = ["charge"]
  words = ["reconcil", "all-due", "orders.wait.too.long"]
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
  words = ["publish", "outbox", "event ?bridge", "\\bbus\\b", "dynamodb/stream", "put events", "hear about orders", "subscriber misses", "producer rule", "example subscriber", "event archive", "paid queue"]
  names = ["scripts/local/system.System.stream"]
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
  words  = ["refund", "every write needs the claim"]
  except = ["charges and refunds: read"] # a permission of Stripe
  names  = ["scripts/orders/view.OrderJSON.ByOthers"]
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
  names = ["scripts/orders.erase.Caller", "scripts/local/system.System.put", "scripts/local/system.System.requests"]
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
  names  = ["domain/order.errShort", "domain/order.errUnknownSKU", "domain/order.ShortError", "domain/order.ReasonUnknownSKU", "scripts/orders.list.Holding",
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
  names  = ["adapters/stripe/stripetest.Machine.customer"]
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
  words = ["\\baudit", "orders verify", "orders/verify", "salvage", "table.was.restored", "from-table", "from table"]
  names = ["scripts/orders.restore.FromTable", "scripts/orders.restore.Status", "scripts/orders.restore.TableRate", "scripts/orders.restore.Validate"]
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

part "release" {
  is = "a tag builds, attests and publishes the zips"
  promises = "Two builds of a tag have the same bytes"
  guide = "docs/guides/upgrade.md"
  aws = "none"
  dollars = 0.00
  lines = 164
  needs = ["charge"]
  words = ["make notes", "release note", "notes.md", "gh (release|attestation)", "workflows/release"]
  paths = [".github/workflows/release.yml", "scripts/package/release/notes*.go"]
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
  needs = ["charge", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit", "job", "page"]
  words = [
    "scripts/lab", "^ *lab/", "make (break|prove|storm|mutate|drill|bench)", "\\bdrill", "simulation", "planted", "gremlins",
    "\\bstorm", "what a page shows as output",
    "make (proof|refund|grow)-page", "make grow", "make spec", "docs/spec", "spec/readme", "charge\\.qnt", "quint", "make conform", "scripts/conform", "conform(ance)?\\.(md|json)", "\\b(grow|performance)\\.md", "^lab *:= *$", "test-long",
  ]
  paths = ["scripts/conform/**", "docs/spec/**", "docs/guides/conform.md", "docs/reference/conformance.*", "docs/reference/proof*.md", "docs/storm.svg", "docs/grow.svg", "docs/performance.svg", "docs/reference/performance.md", "docs/guides/grow.md", "docs/reference/refund-proof.md", "docs/reference/guards.md", "scripts/local/incidents/[^m]*.go",
    "scripts/local/drill*.go", "scripts/local/docs_linux_test.go", "scripts/local/mermaid_test.go",
    "scripts/orders/sessions_test.go", "scripts/orders/runbooks_test.go",
    "adapters/*/*test/*_test.go", "adapters/sqs/fuzz_test.go", "scripts/invariants/*_test.go", "scripts/infra/**", "house_test.go", "docs/faq.md", "docs/tour.md",
  ]
}

part "page" {
  is = "the live page: attack the system in a browser"
  guide = "docs/guides/live.md"
  aws = "none"
  dollars = 0.00
  lines = 38956 # with lab
  needs = ["charge", "webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit", "job", "lab"] # it takes guards away
  except = ["```console"]
  names = ["adapters/lambda/lambdatest.Host.observing"]
  words = ["console", "live page", "make up\\b", "build/up\\b", "browser", "screenshot", "chromium"]
  paths = ["docs/images/**", "docs/tutorial.md", "docs/guides/live.md", "scripts/local/up.go", "scripts/local/page.go", "scripts/local/gate*.go"]
}

# What several parts have goes with the last of them.
shared "operator" {
  of = ["webhook", "reconcile", "publish", "refund", "http", "stock", "receipt", "audit"]
  words = [
    "make (orders|smoke)\\b", "scripts/orders", "operator", "runbooks\\.md", "runbook [0-9]", "has the verdict", "which verdict", "message a verdict", "dead-letters (list|show|redrive|discard)", "(redrive|discard) --", "reference/orders\\.md", "orders --version", "\\bcanceler\\b", "cancel intent", "order.cancellation", "cancel key", "cancel promises",
    "\\borders (show|list|post|check|smoke|refresh|cancel|restore|watch|erase|dead.letters|help|json|scope)",
  ]
  except = ["comparison operator"] # of an alarm
  names = ["domain/order/ordertest.cancel", "domain/order/ordertest.Cancel", "scripts/local.local.attend", "scripts/local.local.cancelUncharged"]
  paths = ["scripts/orders/**", "domain/order/cancel*.go", "domain/settle/**", "docs/reference/orders.md", "docs/guides/runbooks.md"]
}

shared "http api" {
  of = ["webhook", "http"]
  words = ["api ?gateway", "http ?api"]
}

shared "settlement" {
  of = ["webhook", "reconcile"]
  names = ["scripts/local.local.later"]
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

shared "redrive" {
  of = ["page", "lab"]
  names = ["adapters/sqs/sqstest.Machine.Redrive", "adapters/sqs/sqstest.Counts.Redriven", "scripts/local/system.System.Redrive"]
}

never "origin" {
  except = ["nolint:unparam.*"]
  words = [
    "make new(?:[^\\w-]|$)", "make (projects|parts|learn)\\b", "examples/steps", "scripts/take", "decisions\\.md", "rooms\\.md",
    "each room keeps its budget", "system/upgrade test", "upgrade under way",
    "unparam", # a parameter or result may have lost its other users
  ]
  paths = [
    "README.md", "CHANGELOG.md", ".github/ISSUE_TEMPLATE/**", ".github/workflows/parts.yml", "scripts/take/**", "rooms_test.go", "docs/reference/rooms.md", "docs/decisions.md", "docs/parts.md", "docs/guides/take.md",
    "scripts/local/system/upgrade_test.go", # it needs the history of the clone
    "examples/label/**", "examples/existing/**", "examples/steps/**", "docs/build/**", "docs/guides/existing.md", "scripts/newjob/example_test.go",
  ]
}
