# A warning, because a deployment for a first look needs no alarms.
check "alarms_notify_somebody" {
  assert {
    condition     = var.alarm_topic_arn != null
    error_message = "alarm_topic_arn: not set, so none of the ${length(local.alarms)} alarms notifies anybody"
  }
}

locals {
  topics = var.alarm_topic_arn == null ? [] : [var.alarm_topic_arn]

  # Sources of metrics. docs/reference/metrics.md lists those of the function. A metric is
  # found only by exactly the dimensions that it was written with.
  app         = { namespace = "orderonce", dimensions = { Scope = local.scope } }
  order_queue = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.orders.name } }
  dead_queue  = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.dead_letters.name } }
  lambda = {
    namespace  = "AWS/Lambda"
    dimensions = { FunctionName = aws_lambda_function.functions["order"].function_name }
  }
  reconcile = {
    namespace  = "AWS/Lambda"
    dimensions = { FunctionName = aws_lambda_function.functions["reconcile"].function_name }
  }
  publish = {
    namespace  = "AWS/Lambda"
    dimensions = { FunctionName = aws_lambda_function.functions["publish"].function_name }
  }
  unpublished_queue = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.unpublished.name } }
  webhook_api = {
    namespace  = "AWS/ApiGateway"
    dimensions = { ApiId = one(aws_apigatewayv2_api.webhook[*].id) }
  }
  intake_api = {
    namespace  = "AWS/ApiGateway"
    dimensions = { ApiId = one(aws_apigatewayv2_api.orders[*].id) }
  }
  intake  = { namespace = "AWS/Lambda", dimensions = { FunctionName = "${local.prefix}-intake" } }
  receipt = { namespace = "AWS/Lambda", dimensions = { FunctionName = "${local.prefix}-receipt" } }
  # The receipt function writes the metrics of a queue with a dimension more.
  receipt_app = { namespace = "orderonce", dimensions = { Function = "receipt", Scope = local.scope } }
  receipt_by_setting = {
    for setting in keys(local.queue_settings) : setting => {
      namespace  = "orderonce"
      dimensions = { Function = "receipt", Scope = local.scope, Setting = setting }
    }
  }
  receipt_queue = {
    namespace  = "AWS/SQS"
    dimensions = { QueueName = one(aws_sqs_queue.receipts[*].name) }
  }
  receipt_dead_queue = {
    namespace  = "AWS/SQS"
    dimensions = { QueueName = one(aws_sqs_queue.receipts_dead[*].name) }
  }
  paid_dead_queue = {
    namespace  = "AWS/SQS"
    dimensions = { QueueName = one(aws_sqs_queue.paid_dead[*].name) }
  }

  app_by_reason = {
    for reason in [
      "mismatch", "key_reused", "misconfigured", "store_unavailable", "provider_unavailable", "unreadable",
      "refund_unknown",
    ] :
    reason => { namespace = "orderonce", dimensions = { Scope = local.scope, Reason = reason } }
  }
  app_by_setting = {
    for setting in ["retention", "max_receives", "redrive_target", "dead_letter_retention"] :
    setting => { namespace = "orderonce", dimensions = { Scope = local.scope, Setting = setting } }
  }
  app_by_result = {
    for result in [
      "unavailable", "invalid_signature", "mismatch", "row_missing", "no_intent", "failed",
    ] :
    result => { namespace = "orderonce", dimensions = { Scope = local.scope, Result = result } }
  }
  receipts_by_result = {
    for result in ["sent", "doubtful", "bounced", "failed"] :
    result => { namespace = "orderonce", dimensions = { Function = "receipt", Scope = local.scope, Result = result } }
  }
  app_declined = { namespace = "orderonce", dimensions = { Scope = local.scope, Status = "declined" } }
  app_paid     = { namespace = "orderonce", dimensions = { Scope = local.scope, Status = "paid" } }
  app_by_status = {
    for status in ["open", "action_required", "pending"] :
    status => { namespace = "orderonce", dimensions = { Scope = local.scope, Status = status } }
  }

  # Each description says what happened, what to do, and where to read on.
  runbook  = "docs/guides/operate.md"
  failures = "docs/reference/failures.md"

  stop_command = join(" ", [
    "aws lambda update-event-source-mapping --no-enabled --region ${data.aws_region.current.region}",
    "--uuid ${aws_lambda_event_source_mapping.orders.uuid}",
  ])

  # For alarms that may mean a wrong charge: nothing more may be charged until the cause
  # is known.
  stop = <<-EOT
    Stop processing now:
    ${local.stop_command}
    Then set processing = false in Terraform, or the next apply resumes. Do not redrive before you
    know the cause: ${local.runbook}, "A message is parked".
  EOT

  # The settings of the queues that the function checks, and what a wrong one does.
  queue_settings = {
    retention             = "The order queue's retention is too short: SQS deletes waiting orders."
    max_receives          = "The order queue's maxReceiveCount is too low: SQS parks orders without a reason."
    redrive_target        = "The order queue's redrive policy does not name the function's dead-letter queue."
    dead_letter_retention = "The dead-letter queue's retention is too short: SQS deletes parked orders."
  }

  # The hours after which an order of each status has waited too long, and what it waits
  # for.
  waiting_limits = {
    open = {
      hours = 1
      cause = "its message is being retried, or is lost"
    }
    action_required = {
      hours = 72
      cause = "the customer has not confirmed the payment"
    }
    pending = {
      hours = 14 * 24
      cause = "the bank has not decided"
    }
  }

  # Each alarm has a description, its metrics by id, an expression over them unless there
  # is one metric, a threshold that must be exceeded (above) or that must not be missed
  # (below), and in how many of how many periods. A period is 300 s, or as many seconds as
  # period says. CloudWatch allows no SEARCH in an alarm, so each metric is named. An
  # expression has no result while one of its metrics is missing, and no result is not
  # breaching: so a metric that may never be written appears only in numerators, or inside
  # FILL. Below a threshold, no result is breaching. docs/reference/metrics.md says which
  # alarm reports which failure; scripts/infra/outage_test.go compares.
  alarms = merge({
    dead-letters = {
      description = <<-EOT
        Orders are parked in the dead-letter queue and need a person. Read orderonce-reason of each
        message and follow ${local.runbook}, "A message is parked".
      EOT
      metrics = {
        m = merge(local.dead_queue, { name = "ApproximateNumberOfMessagesVisible", stat = "Maximum" })
      }
      above   = 0
      periods = [1, 1]
    }
    dead-letters-old = {
      description = <<-EOT
        A parked message is older than 7 days, and SQS deletes it at 14. Handle or redrive it:
        ${local.runbook}, "A message is parked".
      EOT
      metrics = {
        m = merge(local.dead_queue, { name = "ApproximateAgeOfOldestMessage", stat = "Maximum" })
      }
      above   = 7 * 24 * 60 * 60
      periods = [1, 1]
    }
    # SQS excludes messages that were received three times or more from this metric (SQS
    # developer guide, "Available CloudWatch metrics for Amazon SQS"), so it shows only
    # orders that are not received. orders-retrying shows the others.
    orders-waiting = {
      description = <<-EOT
        An order has waited for more than 30 minutes and was hardly received: processing is stopped,
        the function is throttled or fails to start, or maximum_concurrency is too low. See the
        alarms errors and throttles, then ${local.runbook}, "Orders wait".
      EOT
      metrics = {
        m = merge(local.order_queue, { name = "ApproximateAgeOfOldestMessage", stat = "Maximum" })
      }
      above   = 30 * 60
      periods = [2, 3]
    }
    # A waiting order is redelivered at least every 15 minutes, so one breaching period in
    # four raises the alarm and keeps it on in between.
    orders-retrying = {
      description = <<-EOT
        An order has been retried for more than 30 minutes. The dashboard shows which reason of
        Redelivered grows; ${local.failures} says what to do about it. Orders are parked after six
        days.
      EOT
      metrics     = { m = merge(local.app, { name = "WaitingAge", stat = "Maximum" }) }
      above       = 30 * 60 * 1000
      periods     = [1, 4]
    }
    # An outage fails nearly every delivery while it lasts. A short throttle fails some,
    # or all of them for minutes.
    store-unavailable = {
      description = <<-EOT
        A quarter of the deliveries failed at DynamoDB for 15 minutes. Orders wait; none is lost.
        Check the table's throttles, the role's permissions and ORDERS_TABLE: ${local.failures},
        store_unavailable.
      EOT
      metrics = {
        failed   = merge(local.app_by_reason["store_unavailable"], { name = "Redelivered", stat = "Sum" })
        received = merge(local.app, { name = "Received", stat = "Sum" })
      }
      expression = "100 * failed / received"
      above      = 25
      periods    = [3, 4]
    }
    provider-unavailable = {
      description = <<-EOT
        A quarter of the deliveries failed at Stripe for 15 minutes: an outage or its rate limit.
        Orders wait; none is lost. Check Stripe's status page, or lower maximum_concurrency:
        ${local.runbook}, "Stripe is down or rejects the key".
      EOT
      metrics = {
        failed   = merge(local.app_by_reason["provider_unavailable"], { name = "Redelivered", stat = "Sum" })
        received = merge(local.app, { name = "Received", stat = "Sum" })
      }
      expression = "100 * failed / received"
      above      = 25
      periods    = [3, 4]
    }
    orders-open-long = {
      description = <<-EOT
        One order in a hundred took more than 10 minutes from sent to settled. Check CallLatency and
        Duration on the dashboard, then maximum_concurrency: docs/guides/deploy.md, "Capacity".
      EOT
      metrics     = { m = merge(local.app, { name = "OrderAge", stat = "p99" }) }
      above       = 10 * 60 * 1000
      periods     = [2, 3]
    }
    errors = {
      description = <<-EOT
        The function crashed, timed out or failed to start; a failed order is not an error of the
        function. Read its log. If it cannot start, orders reach the dead-letter queue after 50
        hours: ${local.runbook}, "A message has no reason".
      EOT
      metrics     = { m = merge(local.lambda, { name = "Errors", stat = "Sum" }) }
      above       = 0
      periods     = [2, 3]
    }
    throttles = {
      description = <<-EOT
        Lambda throttles the function, and every throttled batch uses up a receive of its messages.
        Raise reserved_concurrency or the account's quota: docs/guides/deploy.md, "Capacity".
      EOT
      metrics     = { m = merge(local.lambda, { name = "Throttles", stat = "Sum" }) }
      above       = 0
      periods     = [3, 5]
    }
    duration = {
      description = <<-EOT
        Invocations take 80 percent of function_timeout. Check CallLatency on the dashboard, then
        lower batch_size or raise function_timeout and visibility_timeout.
      EOT
      metrics     = { m = merge(local.lambda, { name = "Duration", stat = "p99" }) }
      above       = 0.8 * 1000 * var.function_timeout
      periods     = [3, 5]
    }
    duplicates = {
      description = <<-EOT
        More than 20 percent of the deliveries are duplicates of settled orders. None is charged
        again. Find the producer that sends twice, or check whether DeleteMessage fails.
      EOT
      metrics = {
        duplicates = merge(local.app, { name = "Duplicates", stat = "Sum" })
        received   = merge(local.app, { name = "Received", stat = "Sum" })
      }
      expression = "IF(received >= 50, 100 * duplicates / received, 0)"
      above      = 20
      periods    = [2, 3]
    }
    unknown-outcomes = {
      description = <<-EOT
        Calls to Stripe ended without a readable response, so a charge may have happened. The next
        attempt reads the PaymentIntent first; nothing is charged twice. Check Stripe's status page:
        ${local.failures}, provider_unknown.
      EOT
      metrics     = { m = merge(local.app, { name = "Unknown", stat = "Sum" }) }
      above       = 5
      periods     = [2, 3]
    }
    declines = {
      description = <<-EOT
        More than 30 percent of the settled orders are declined: card testing, an issuer outage, or
        a wrong Stripe account. Look at the declines in Stripe's Dashboard.
      EOT
      metrics = {
        declined = merge(local.app_declined, { name = "Settled", stat = "Sum" })
        # OrderAge has one sample per settled order.
        settled = merge(local.app, { name = "OrderAge", stat = "SampleCount" })
      }
      expression = "IF(settled >= 20, 100 * declined / settled, 0)"
      above      = 30
      periods    = [2, 3]
    }
    mismatch = {
      description = <<-EOT
        A PaymentIntent belongs to another order, amount or scope: two deployments may share a
        scope. ${local.stop}
      EOT
      metrics     = { m = merge(local.app_by_reason["mismatch"], { name = "Parked", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    key-reused = {
      description = <<-EOT
        Stripe has an idempotency key of an order or a refund that the table does not have: a row was
        lost, or the table was restored from a backup. ${local.stop}
      EOT
      metrics     = { m = merge(local.app_by_reason["key_reused"], { name = "Parked", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    refund-unknown = {
      description = <<-EOT
        Nobody knows whether a refund was made, and it is not sent again. The customer waits, and the
        amount stays reserved, until a person has compared it with Stripe: docs/guides/refund.md,
        "Resolve an unknown refund".
      EOT
      metrics     = { m = merge(local.app_by_reason["refund_unknown"], { name = "Parked", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    # The alarm mismatch counts what is parked. After a request for a refund the message
    # comes back when its lease ends, every 15 minutes, so one breaching period in four
    # keeps the alarm on in between.
    refund-mismatch = {
      description = <<-EOT
        Stripe answered a request for a refund with one of another order, amount or scope: somebody
        edited its metadata, or two deployments share a scope. Compare the two before anything else:
        ${local.runbook}, "A refund does not match".
      EOT
      metrics     = { m = merge(local.app_by_reason["mismatch"], { name = "Redelivered", stat = "Sum" }) }
      above       = 0
      periods     = [1, 4]
    }
    refunded-outside = {
      description = <<-EOT
        Money of an order went back that no refund message asked for. If none of you gave it back in
        Stripe's Dashboard, somebody else can: ${local.runbook}, "Money went back outside".
      EOT
      metrics     = { m = merge(local.app, { name = "RefundedOutside", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    misconfigured = {
      description = <<-EOT
        Stripe rejects the key or does not know a PaymentIntent of this deployment, or a batch has
        too little time for one order. Orders wait. Read error in the function's log:
        ${local.failures}, misconfigured.
      EOT
      metrics = {
        m = merge(local.app_by_reason["misconfigured"], { name = "Redelivered", stat = "Sum" })
      }
      above   = 0
      periods = [1, 1]
    }
    }, {
    # One alarm per setting, because a sum has no result while one of the four is missing.
    # The function checks once per execution environment, so the alarm stays on for an
    # hour.
    for setting, problem in local.queue_settings : "queue-${replace(setting, "_", "-")}" => {
      description = <<-EOT
        ${problem} Correct the queue; the log line "queue misconfigured" has the value and the
        remedy: ${local.runbook}, "The queues are misconfigured".
      EOT
      metrics = {
        m = merge(local.app_by_setting[setting], { name = "QueueMisconfigured", stat = "Sum" })
      }
      above   = 0
      periods = [1, 12]
    }
    }, { for name, alarm in {
      # Anybody can send unsigned requests, which get a 4xx: they are no part of the whole, or
      # a stranger could lower the share below the threshold.
      #
      # Requests may be rare, and Stripe repeats one after minutes, then after hours. So
      # three periods within an hour raise the alarm, not three in a row.
      webhook-failing = {
        description = <<-EOT
          A quarter of the signed webhook requests got a 5xx in three five-minute periods of an hour: the
          function crashes, times out, is throttled or does not start, or the alarm
          webhook-unavailable names the cause. Stripe sends the events again for three days:
          ${local.runbook}, "The webhook fails".
        EOT
        metrics = {
          errors   = merge(local.webhook_api, { name = "5xx", stat = "Sum" })
          requests = merge(local.webhook_api, { name = "Count", stat = "Sum" })
          rejected = merge(local.webhook_api, { name = "4xx", stat = "Sum" })
        }
        expression = "100 * errors / (requests - FILL(rejected, 0))"
        above      = 25
        periods    = [3, 12]
      }
      webhook-unavailable = {
        description = <<-EOT
          A quarter of the signed webhook requests failed at DynamoDB or Stripe in three five-minute periods
          of an hour. No event is lost. Read error in the function's log: ${local.runbook},
          "The webhook fails".
        EOT
        metrics = {
          failed   = merge(local.app_by_result["unavailable"], { name = "Webhooks", stat = "Sum" })
          requests = merge(local.webhook_api, { name = "Count", stat = "Sum" })
          rejected = merge(local.webhook_api, { name = "4xx", stat = "Sum" })
        }
        expression = "100 * failed / (requests - FILL(rejected, 0))"
        above      = 25
        periods    = [3, 12]
      }
      # Above 80 percent of what the API accepts, Stripe's requests are among those that get
      # a 429. Accepted requests alone reach the threshold, whether or not Count has the
      # others.
      webhook-flooded = {
        description = <<-EOT
          The webhook's API gets nearly as many requests as it accepts, so Stripe's may be answered 429
          and are sent again for three days. Reconcile settles orders meanwhile. New disputes stay
          hidden: look at them in Stripe's Dashboard. ${local.runbook}, "The webhook is flooded".
        EOT
        metrics     = { m = merge(local.webhook_api, { name = "Count", stat = "Sum" }) }
        above       = 0.8 * 300 * var.webhook_rate_limit
        periods     = [3, 12]
      }
      # The URL is public, so a few unsigned requests are normal. With a wrong secret all
      # events fail, several per order, and Stripe repeats them: more than five in each of
      # two periods. The threshold is a number and not a share, because scanners may send
      # most of the requests of a quiet shop.
      webhook-signatures = {
        description = <<-EOT
          Webhook requests have an invalid signature. If Stripe sends them, the stored secret is not
          that of the endpoint, and no order is settled by webhooks. Otherwise somebody forges
          requests, which are rejected: ${local.runbook}, "Webhook signatures are rejected".
        EOT
        metrics = {
          m = merge(local.app_by_result["invalid_signature"], { name = "Webhooks", stat = "Sum" })
        }
        above   = 5
        periods = [2, 12]
      }
      webhook-mismatch = {
        description = <<-EOT
          A webhook's PaymentIntent and the order's row disagree: another PaymentIntent may have taken
          money, or two deployments may share a scope. Compare the two before anything else:
          ${local.runbook}, "A webhook does not match its row".
        EOT
        metrics = {
          m = merge(local.app_by_result["mismatch"], { name = "Webhooks", stat = "Sum" })
        }
        above   = 0
        periods = [1, 1]
      }
      webhook-row-missing = {
        description = <<-EOT
          A webhook of this scope names an order that has no row: the row was lost or deleted, so the
          order could be charged again. ${local.runbook}, "A webhook has no row".
        EOT
        metrics = {
          m = merge(local.app_by_result["row_missing"], { name = "Webhooks", stat = "Sum" })
        }
        above   = 0
        periods = [1, 1]
      }
      dispute = {
        description = <<-EOT
          A customer disputed a charge. Stripe asks for evidence before a deadline, after which the
          money is lost: ${local.runbook}, "An order is disputed".
        EOT
        metrics     = { m = merge(local.app, { name = "Disputed", stat = "Sum" }) }
        above       = 0
        periods     = [1, 1]
      }
      } : name => alarm if var.create_webhook }, { for name, alarm in {
      # The callers repeat a 5xx, so nothing is lost. The status 503 of a queue or table that
      # does not respond counts as well.
      intake-failing = {
        description = <<-EOT
          A quarter of the orders by HTTP got a 5xx for 10 minutes: the function crashes, is throttled
          or does not start, or the queue or the table does not respond. Callers must repeat their
          requests: ${local.runbook}, "Orders by HTTP fail".
        EOT
        metrics = {
          errors   = merge(local.intake_api, { name = "5xx", stat = "Sum" })
          requests = merge(local.intake_api, { name = "Count", stat = "Sum" })
        }
        expression = "100 * errors / requests"
        above      = 25
        periods    = [2, 3]
      }
      intake-errors = {
        description = <<-EOT
          The intake function crashed, timed out or failed to start; a 503 that it answers is not an
          error of the function. Read its log: ${local.runbook}, "Orders by HTTP fail".
        EOT
        metrics     = { m = merge(local.intake, { name = "Errors", stat = "Sum" }) }
        above       = 0
        periods     = [2, 3]
      }
      intake-throttles = {
        description = <<-EOT
          Lambda throttles the intake function, so callers get 5xx. Raise the account's quota of
          concurrent executions, or lower intake_rate_limit: ${local.runbook}, "Orders by HTTP fail".
        EOT
        metrics     = { m = merge(local.intake, { name = "Throttles", stat = "Sum" }) }
        above       = 0
        periods     = [3, 5]
      }
      } : name => alarm if var.create_intake }, { for name, alarm in {
      receipts-doubtful = {
        description = <<-EOT
          Nobody knows whether a receipt was sent. It is not sent again unless receipt_mode is
          at_least_once. SES's event may still resolve it, or a person: ${local.runbook}, "A receipt is
          doubtful".
        EOT
        metrics = {
          m = merge(local.receipts_by_result["doubtful"], { name = "Receipts", stat = "Sum" })
        }
        above   = 0
        periods = [1, 1]
      }
      receipts-dead-letters = {
        description = <<-EOT
          Events of receipts are parked, or EventBridge could not deliver them, and their e-mails are
          not sent: ${local.runbook}, "Receipts are not sent".
        EOT
        metrics = {
          m = merge(local.receipt_dead_queue, { name = "ApproximateNumberOfMessagesVisible", stat = "Maximum" })
        }
        above   = 0
        periods = [1, 1]
      }
      # SQS excludes messages that were received three times or more. receipts-retrying shows
      # those.
      receipts-waiting = {
        description = <<-EOT
          An event has waited for its receipt for more than 30 minutes and was hardly received: the
          function is throttled or fails to start: ${local.runbook}, "Receipts are not sent".
        EOT
        metrics = {
          m = merge(local.receipt_queue, { name = "ApproximateAgeOfOldestMessage", stat = "Maximum" })
        }
        above   = 30 * 60
        periods = [2, 3]
      }
      receipts-retrying = {
        description = <<-EOT
          A receipt has been retried for more than 30 minutes: its table, Stripe or SES fails, or SES
          rejects it. The dashboard shows why. Receipts are parked after six days:
          ${local.runbook}, "Receipts are not sent".
        EOT
        metrics     = { m = merge(local.receipt_app, { name = "WaitingAge", stat = "Maximum" }) }
        above       = 30 * 60 * 1000
        periods     = [1, 4]
      }
      receipt-throttles = {
        description = <<-EOT
          Lambda throttles the receipt function, and every throttled batch uses up a receive of its
          messages. Raise the account's quota of concurrent executions: ${local.runbook}, "Receipts are
          not sent".
        EOT
        metrics     = { m = merge(local.receipt, { name = "Throttles", stat = "Sum" }) }
        above       = 0
        periods     = [3, 5]
      }
      # As queue-*: the function checks once per execution environment.
      receipt-queue-settings = {
        description = <<-EOT
          A setting of the receipt queue or its dead-letter queue is not what the function assumes, so
          SQS may delete receipts. The log line "queue misconfigured" has the setting and the remedy:
          ${local.runbook}, "The queues are misconfigured".
        EOT
        metrics = { for setting, source in local.receipt_by_setting :
          setting => merge(source, { name = "QueueMisconfigured", stat = "Sum" })
        }
        expression = join(" + ", [for setting in keys(local.queue_settings) : "FILL(${setting}, 0)"])
        above      = 0
        periods    = [1, 12]
      }
      receipts-failed = {
        description = <<-EOT
          SES rejects receipts, or their customers have no address: the account is in the sandbox,
          paused or over its quota, or the sender is not verified. None was sent:
          ${local.runbook}, "Receipts are not sent".
        EOT
        metrics = {
          m = merge(local.receipts_by_result["failed"], { name = "Receipts", stat = "Sum" })
        }
        above   = 5
        periods = [2, 3]
      }
      # SES reviews an account at 5 percent of bounces (SES developer guide, "Reputation
      # dashboard"). Bounces may come long after their receipts, so a period is an hour.
      receipts-bounced = {
        description = <<-EOT
          More than 5 percent of the receipts of an hour bounced. SES may pause the account: look at the
          addresses at Stripe: ${local.runbook}, "Receipts are not sent".
        EOT
        metrics = {
          bounced = merge(local.receipts_by_result["bounced"], { name = "Receipts", stat = "Sum" })
          sent    = merge(local.receipts_by_result["sent"], { name = "Receipts", stat = "Sum" })
        }
        expression = "IF(sent >= 20, 100 * bounced / sent, 0)"
        above      = 5
        periods    = [1, 2]
        period     = 60 * 60
      }
      receipt-errors = {
        description = <<-EOT
          The receipt function crashed, timed out or failed to start. A crash between an e-mail and its
          row leaves a doubtful receipt. Read its log: ${local.runbook}, "Receipts are not sent".
        EOT
        metrics     = { m = merge(local.receipt, { name = "Errors", stat = "Sum" }) }
        above       = 0
        periods     = [2, 3]
      }
      } : name => alarm if var.create_receipts }, { for name, alarm in {
      subscriber-dead-letters = {
        description = <<-EOT
          Events of the example subscriber are in its dead-letter queue: EventBridge could not deliver
          them, or the consumer failed on them. ${local.runbook}, "A subscriber misses events".
        EOT
        metrics = {
          m = merge(local.paid_dead_queue, { name = "ApproximateNumberOfMessagesVisible", stat = "Maximum" })
        }
        above   = 0
        periods = [1, 1]
      }
    } : name => alarm if var.create_example_subscriber }, {
    # Two failed runs within an hour, or two consecutive ones if they are an hour apart.
    reconcile-errors = {
      description = <<-EOT
        The reconcile function failed twice: it crashed, timed out, failed to start, could not read the
        index, or got no answer of Stripe or DynamoDB. Orders that wait are not settled by it; none is lost. Read its log:
        ${local.runbook}, "Reconcile fails".
      EOT
      metrics     = { m = merge(local.reconcile, { name = "Errors", stat = "Sum" }) }
      above       = 0
      periods     = [2, max(12, ceil(var.reconcile_minutes / 5) + 2)]
    }
    # The schedule may be disabled, deleted or not allowed to invoke the function. Lambda
    # writes no Invocations then, so missing data must be breaching.
    reconcile-missing = {
      description = <<-EOT
        The reconcile function was not invoked for three intervals of its schedule. Orders that wait
        are settled by webhooks only: ${local.runbook}, "Reconcile fails". After the first apply the
        alarm is on until the first run.
      EOT
      metrics     = { m = merge(local.reconcile, { name = "Invocations", stat = "Sum" }) }
      below       = 1
      periods     = [3, 3]
      period      = 60 * var.reconcile_minutes
    }
    reconcile-mismatch = {
      description = <<-EOT
        An order that waits and its PaymentIntent disagree: another PaymentIntent may have taken
        money, or two deployments may share a scope. The function's log has order_id. Compare the two
        before anything else: ${local.runbook}, "A webhook does not match its row".
      EOT
      metrics = {
        m = merge(local.app_by_result["mismatch"], { name = "Reconciled", stat = "Sum" })
      }
      above   = 0
      periods = [1, 1]
    }
    # A look that failed is repeated within 6 hours, by a run at most an hour later. So one
    # breaching hour of 8 raises the alarm and keeps it on in between.
    reconcile-failing = {
      description = <<-EOT
        The reconcile function cannot look at some orders: their rows are corrupt or of a newer
        release, their PaymentIntents are in another account, the key lacks a permission, or
        STOCK_TABLE is not set. The others are looked at. Its log has each order_id and error:
        ${local.runbook}, "Reconcile fails".
      EOT
      metrics = {
        m = merge(local.app_by_result["failed"], { name = "Reconciled", stat = "Sum" })
      }
      above   = 0
      periods = [1, 8]
      period  = 60 * 60
    }
    reconcile-behind = {
      description = <<-EOT
        An order was due for more than 6 hours before the reconcile function looked at it: there are
        more orders than its runs can look at, or it did not run. ${local.runbook}, "Reconcile fails".
      EOT
      metrics     = { m = merge(local.app, { name = "Overdue", stat = "Maximum" }) }
      above       = 6 * 60 * 60 * 1000
      periods     = [1, 2]
      period      = 60 * 60
    }
    orders-without-intent = {
      description = <<-EOT
        An order has been open for at least 15 minutes without a PaymentIntent and without a worker.
        It was not charged. Only its message can charge it, and the message may be gone:
        ${local.runbook}, "An open order without an intent".
      EOT
      metrics = {
        m = merge(local.app_by_result["no_intent"], { name = "Reconciled", stat = "Sum" })
      }
      above   = 0
      periods = [1, 1]
    }
    # The age of the newest record of each batch, also of one that is retried. The stream
    # forgets a record after 24 hours.
    publish-behind = {
      description = <<-EOT
        Order events are published more than 15 minutes late: EventBridge refuses them or does not
        respond, or the function fails. Consumers wait; no order is affected. Nothing is lost for 22
        hours: ${local.runbook}, "Events are published late".
      EOT
      metrics     = { m = merge(local.publish, { name = "IteratorAge", stat = "Maximum" }) }
      above       = 15 * 60 * 1000
      periods     = [2, 3]
    }
    publish-errors = {
      description = <<-EOT
        The publish function crashed, timed out or failed to start; events that EventBridge refuses
        are not errors of the function. Read its log: ${local.runbook}, "Events are published late".
      EOT
      metrics     = { m = merge(local.publish, { name = "Errors", stat = "Sum" }) }
      above       = 0
      periods     = [2, 3]
    }
    publish-throttles = {
      description = <<-EOT
        Lambda throttles the publish function, so order events are published late. Raise the account's
        quota of concurrent executions: ${local.runbook}, "Events are published late".
      EOT
      metrics     = { m = merge(local.publish, { name = "Throttles", stat = "Sum" }) }
      above       = 0
      periods     = [3, 5]
    }
    # IteratorAge has no value if nothing reads the stream. An event is published within
    # seconds, so at most the last order of an hour raises a false alarm.
    publish-silent = {
      description = <<-EOT
        Orders were paid in an hour in which no event was published: nothing reads the table's stream.
        Its event source mapping may be disabled or deleted. The stream forgets events after 24 hours:
        ${local.runbook}, "Events are published late".
      EOT
      metrics = {
        paid      = merge(local.app_paid, { name = "Settled", stat = "Sum" })
        published = merge(local.app, { name = "Published", stat = "Sum" })
      }
      expression = "IF(FILL(published, 0) == 0, paid, 0)"
      above      = 0
      periods    = [1, 1]
      period     = 60 * 60
    }
    events-unreadable = {
      description = <<-EOT
        The publish function skipped an event row that it cannot read: somebody wrote or changed it by
        hand. Consumers miss the event: ${local.runbook}, "Events are published late".
      EOT
      metrics = {
        m = merge(local.app_by_reason["unreadable"], { name = "Unpublished", stat = "Sum" })
      }
      above   = 0
      periods = [1, 1]
    }
    events-unpublished = {
      description = <<-EOT
        Order events were not published within 22 hours, and Lambda has given up. Their rows are still
        in the table. Publish them by hand: ${local.runbook}, "Events were not published".
      EOT
      metrics = {
        m = merge(local.unpublished_queue, { name = "ApproximateNumberOfMessagesVisible", stat = "Maximum" })
      }
      above   = 0
      periods = [1, 1]
    }
    }, {
    # The metric has a value only when the function looks at an order, and it postpones the
    # next look by the time that the order has waited, up to a day. The next run is at most
    # an hour later. So one breaching hour of 26 raises the alarm and keeps it on until the
    # next look. CloudWatch allows more than a day only with periods of at least an hour.
    for status, limit in local.waiting_limits : "orders-waiting-${replace(status, "_", "-")}" => {
      description = <<-EOT
        An order has had the status ${status} for more than ${limit.hours} h: ${limit.cause}. Find it
        with the index open: ${local.runbook}, "Orders wait too long". The alarm stays on for up to 26
        hours after the order is settled.
      EOT
      metrics = {
        m = merge(local.app_by_status[status], { name = "OldestWaiting", stat = "Maximum" })
      }
      above   = limit.hours * 60 * 60 * 1000
      periods = [1, 26]
      period  = 60 * 60
    }
  })
}

resource "aws_cloudwatch_metric_alarm" "alarms" {
  for_each = local.alarms

  alarm_name          = "${local.prefix}-${each.key}"
  alarm_description   = trimspace(each.value.description)
  comparison_operator = can(each.value.below) ? "LessThanThreshold" : "GreaterThanThreshold"
  threshold           = can(each.value.below) ? each.value.below : each.value.above
  datapoints_to_alarm = each.value.periods[0]
  evaluation_periods  = each.value.periods[1]
  treat_missing_data  = can(each.value.below) ? "breaching" : "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics

  dynamic "metric_query" {
    for_each = each.value.metrics

    content {
      id          = metric_query.key
      return_data = !can(each.value.expression)

      metric {
        namespace   = metric_query.value.namespace
        metric_name = metric_query.value.name
        dimensions  = metric_query.value.dimensions
        stat        = metric_query.value.stat
        period      = try(each.value.period, 300)
      }
    }
  }

  dynamic "metric_query" {
    for_each = can(each.value.expression) ? [each.value.expression] : []

    content {
      id          = "result"
      expression  = metric_query.value
      return_data = true
    }
  }
}
