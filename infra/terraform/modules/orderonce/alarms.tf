# A warning, because a deployment for a first look needs no alarms.
check "alarms_notify_somebody" {
  assert {
    condition     = var.alarm_topic_arn != null || var.alarms == "none"
    error_message = "alarm_topic_arn: not set, so none of the ${length(local.alarms)} alarms notifies anybody"
  }
}

locals {
  topics = var.alarm_topic_arn == null ? [] : [var.alarm_topic_arn]

  # Each alarm has a description, a metric or several by id with an expression over them, and
  # unless they are 0 and [1, 1], a threshold that must be exceeded (above) or that must not be
  # missed (below), and in how many of how many periods. A period is 300 s, or as many seconds
  # as period says. CloudWatch allows no SEARCH in an alarm, so each metric is named. An
  # expression has no result while one of its metrics is missing, and no result is not
  # breaching: so a metric that may never be written appears only in numerators, or inside
  # FILL. Below a threshold, no result is breaching. docs/reference/metrics.md says which
  # alarm reports which failure; scripts/infra/alarms_test.go compares.
  alarms = { for name, alarm in merge([for part in local.parts : part.alarms]...) : name => alarm
    if var.alarms == "all" || var.alarms == "essential" && contains(local.essential, name)
  }

  # What variables.tf promises of these, scripts/infra/alarms_test.go checks.
  essential = flatten([for part in local.parts : part.essential])

  # A metric is written as source, name, statistic and further dimensions. It is found only by
  # exactly the dimensions that it was written with. docs/reference/metrics.md lists those of
  # the functions (app).
  sources = merge(
    { app = { namespace = "orderonce", dimensions = { Scope = local.scope } } },
    { for name in keys(local.functions) : "lambda/${name}" => {
      namespace = "AWS/Lambda", dimensions = { FunctionName = "${local.prefix}-${name}" }
    } },
    { for name, queue in local.queue_names : "queue/${name}" => {
      namespace = "AWS/SQS", dimensions = { QueueName = queue }
    } },
    { for name, api in { webhook = aws_apigatewayv2_api.webhook, intake = aws_apigatewayv2_api.orders } :
      "api/${name}" => { namespace = "AWS/ApiGateway", dimensions = { ApiId = one(api[*].id) } }
    },
  )

  # Each description says what happened, what to do, and where to read on.
  runbook  = "docs/guides/operate.md"
  failures = "docs/reference/failures.md"

  stop_command = join(" ", [
    "aws lambda update-event-source-mapping --no-enabled --region ${data.aws_region.current.region}",
    "--uuid ${aws_lambda_event_source_mapping.queues["orders"].uuid}",
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

  # What functions besides that of orders have in common: where their alarms lead, and the
  # messages of their queue if they have one.
  usual = {
    publish = { see = "${local.runbook}, \"Events are published late\"" }
    intake  = { see = "${local.runbook}, \"Orders by HTTP fail\"" }
    refund  = { see = "${local.runbook}, \"Refunds wait\"", messages = "refunds" }
    receipt = { see = "${local.runbook}, \"Receipts are not sent\"", messages = "receipts" }
  }
  usual_alarms = { for name, of in local.usual : name => merge({
    "${name}-errors" = { metric = "lambda/${name} Errors Sum", periods = [2, 3], description = <<-EOT
    The ${name} function crashed, timed out or failed to start. What it answers or puts back is not an error
    of the function. Read its log: ${of.see}.
  EOT
    }
    "${name}-throttles" = { metric = "lambda/${name} Throttles Sum", periods = [3, 5], description = <<-EOT
    Lambda throttles the ${name} function, so its work waits or is refused. Raise the account's quota of
    concurrent executions: ${of.see}.
  EOT
    }
    }, [for messages in [try(of.messages, null)] : {
      # The function checks its queue once per execution environment, so the alarm stays on for an hour.
      "${name}-queue-settings" = {
        metrics = { for setting in keys(local.queue_settings) :
          setting => "app QueueMisconfigured Sum Function=${name} Setting=${setting}"
        }
        expression = join(" + ", [for setting in keys(local.queue_settings) : "FILL(${setting}, 0)"])
        periods    = [1, 12], description = <<-EOT
    A setting of the ${name} queue or its dead-letter queue is not what the function assumes, so SQS may
    delete ${messages}. The log line "queue misconfigured" has the setting and the remedy: ${local.runbook},
    "The queues are misconfigured".
  EOT
      }
      # As orders-waiting and orders-retrying below.
      "${messages}-waiting" = {
        metric      = "queue/${messages} ApproximateAgeOfOldestMessage Maximum", above = 30 * 60, periods = [2, 3]
        description = <<-EOT
    One of the ${messages} has waited for more than 30 minutes and was hardly received: processing is stopped,
    or the function is throttled or fails to start: ${of.see}.
  EOT
      }
      "${messages}-retrying" = {
        metric      = "app WaitingAge Maximum Function=${name}", above = 30 * 60 * 1000, periods = [1, 4]
        description = <<-EOT
    One of the ${messages} has been retried for more than 30 minutes. The metric Redelivered says why. They are
    parked after six days: ${of.see}.
  EOT
      }
    } if messages != null]...)
  }

  # The alarms of the order function, and of what every part shares.
  order_alarms = merge({
    dead-letters = {
      metric = "queue/orders-dead ApproximateNumberOfMessagesVisible Maximum", description = <<-EOT
      Orders are parked in the dead-letter queue and need a person. Read orderonce-reason of each message and
      follow ${local.runbook}, "A message is parked".
    EOT
    }
    dead-letters-old = {
      metric      = "queue/orders-dead ApproximateAgeOfOldestMessage Maximum", above = 7 * 24 * 60 * 60
      description = <<-EOT
      A parked message is older than 7 days, and SQS deletes it at 14. Handle or redrive it: ${local.runbook},
      "A message is parked".
    EOT
    }
    # SQS excludes messages that were received three times or more from this metric (SQS
    # developer guide, "Available CloudWatch metrics for Amazon SQS"), so it shows only
    # orders that are not received. orders-retrying shows the others.
    orders-waiting = {
      metric      = "queue/orders ApproximateAgeOfOldestMessage Maximum", above = 30 * 60, periods = [2, 3]
      description = <<-EOT
      An order has waited for more than 30 minutes and was hardly received: processing is stopped, the
      function is throttled or fails to start, or maximum_concurrency is too low. See the metrics Errors and
      Throttles of the function, then ${local.runbook}, "Orders wait".
    EOT
    }
    # A waiting order is redelivered at least every 15 minutes, so one breaching period in
    # four raises the alarm and keeps it on in between.
    orders-retrying = {
      metric = "app WaitingAge Maximum", above = 30 * 60 * 1000, periods = [1, 4], description = <<-EOT
      An order has been retried for more than 30 minutes. The metric Redelivered says which reason grows;
      ${local.failures} says what to do about it. Orders are parked after six days.
    EOT
    }
    # An outage fails nearly every delivery while it lasts. A short throttle fails some,
    # or all of them for minutes.
    store-unavailable = {
      metrics    = { failed = "app Redelivered Sum Reason=store_unavailable", received = "app Received Sum" }
      expression = "100 * failed / received", above = 25, periods = [3, 4], description = <<-EOT
      A quarter of the deliveries failed at DynamoDB for 15 minutes. Orders wait; none is lost. Check the
      table's throttles, the role's permissions and ORDERS_TABLE: ${local.failures}, store_unavailable.
    EOT
    }
    provider-unavailable = {
      metrics    = { failed = "app Redelivered Sum Reason=provider_unavailable", received = "app Received Sum" }
      expression = "100 * failed / received", above = 25, periods = [3, 4], description = <<-EOT
      A quarter of the deliveries failed at Stripe for 15 minutes: an outage or its rate limit. Orders wait;
      none is lost. Check Stripe's status page, or lower maximum_concurrency: ${local.runbook}, "Stripe is
      down or rejects the key".
    EOT
    }
    orders-open-long = {
      metric = "app OrderAge p99", above = 10 * 60 * 1000, periods = [2, 3], description = <<-EOT
      One order in a hundred took more than 10 minutes from sent to settled. Check the metrics CallLatency and
      Duration, then maximum_concurrency: docs/guides/deploy.md, "Capacity".
    EOT
    }
    errors = { metric = "lambda/order Errors Sum", periods = [2, 3], description = <<-EOT
      The function crashed, timed out or failed to start; a failed order is not an error of the function. Read
      its log. If it cannot start, orders reach the dead-letter queue after 50 hours: ${local.runbook}, "A
      message has no reason".
    EOT
    }
    throttles = { metric = "lambda/order Throttles Sum", periods = [3, 5], description = <<-EOT
      Lambda throttles the function, and every throttled batch uses up a receive of its messages. Raise
      reserved_concurrency or the account's quota: docs/guides/deploy.md, "Capacity".
    EOT
    }
    duration = {
      metric      = "lambda/order Duration p99", above = 0.8 * 1000 * var.function_timeout, periods = [3, 5]
      description = <<-EOT
      Invocations take 80 percent of function_timeout. Check the metric CallLatency, then lower
      batch_size or raise function_timeout and visibility_timeout.
    EOT
    }
    duplicates = {
      metrics     = { duplicates = "app Duplicates Sum", received = "app Received Sum" }
      expression  = "IF(received >= 50, 100 * duplicates / received, 0)", above = 20, periods = [2, 3]
      description = <<-EOT
      More than 20 percent of the deliveries are duplicates of settled orders. None is charged again. Find the
      producer that sends twice, or check whether DeleteMessage fails.
    EOT
    }
    unknown-outcomes = { metric = "app Unknown Sum", above = 5, periods = [2, 3], description = <<-EOT
      Calls to Stripe ended without a readable response, so a charge may have happened. The next attempt reads
      the PaymentIntent first; nothing is charged twice. Check Stripe's status page: ${local.failures},
      provider_unknown.
    EOT
    }
    # OrderAge has one sample per settled order.
    declines = {
      metrics     = { declined = "app Settled Sum Status=declined", settled = "app OrderAge SampleCount" }
      expression  = "IF(settled >= 20, 100 * declined / settled, 0)", above = 30, periods = [2, 3]
      description = <<-EOT
      More than 30 percent of the settled orders are declined: card testing, an issuer outage, or a wrong
      Stripe account. Look at the declines in Stripe's Dashboard.
    EOT
    }
    mismatch = { metric = "app Parked Sum Reason=mismatch", stop = true, description = <<-EOT
      A PaymentIntent belongs to another order, amount or scope: two deployments may share a scope.
    EOT
    }
    key-reused = { metric = "app Parked Sum Reason=key_reused", stop = true, description = <<-EOT
      Stripe has an idempotency key of an order that the table does not have: a row was lost, or the table was
      restored from a backup.
    EOT
    }
    refunded-outside = { metric = "app RefundedOutside Sum", description = <<-EOT
      Money of an order went back that no refund message asked for. If none of you gave it back in Stripe's
      Dashboard, somebody else can: ${local.runbook}, "Money went back outside".
    EOT
    }
    misconfigured = { metric = "app Redelivered Sum Reason=misconfigured", description = <<-EOT
      Stripe rejects the key or does not know a PaymentIntent of this deployment, or a batch has too little
      time for one order. Orders wait. Read error in the function's log: ${local.failures}, misconfigured.
    EOT
    }
    }, {
    # One alarm per setting, because a sum has no result while one of the four is missing.
    # The function checks once per execution environment, so the alarm stays on for an
    # hour.
    for setting, problem in local.queue_settings : "queue-${replace(setting, "_", "-")}" => {
      metric = "app QueueMisconfigured Sum Setting=${setting}", periods = [1, 12], description = <<-EOT
      ${problem} Correct the queue; the log line "queue misconfigured" has the value and the remedy:
      ${local.runbook}, "The queues are misconfigured".
    EOT
    }
  })
}

resource "aws_cloudwatch_metric_alarm" "alarms" {
  for_each = local.alarms

  alarm_name          = "${local.prefix}-${each.key}"
  alarm_description   = trimspace("${each.value.description}${can(each.value.stop) ? local.stop : ""}")
  comparison_operator = can(each.value.below) ? "LessThanThreshold" : "GreaterThanThreshold"
  threshold           = try(each.value.below, each.value.above, 0)
  datapoints_to_alarm = try(each.value.periods[0], 1)
  evaluation_periods  = try(each.value.periods[1], 1)
  treat_missing_data  = can(each.value.below) ? "breaching" : "notBreaching"
  alarm_actions       = local.topics
  ok_actions          = local.topics

  dynamic "metric_query" {
    for_each = { for id, metric in try(each.value.metrics, { m = each.value.metric }) : id => split(" ", metric) }

    content {
      id          = metric_query.key
      return_data = !can(each.value.expression)

      metric {
        namespace   = local.sources[metric_query.value[0]].namespace
        metric_name = metric_query.value[1]
        stat        = metric_query.value[2]
        period      = try(each.value.period, 300)
        dimensions = merge(local.sources[metric_query.value[0]].dimensions, {
          for dimension in slice(metric_query.value, 3, length(metric_query.value)) :
          split("=", dimension)[0] => split("=", dimension)[1]
        })
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
