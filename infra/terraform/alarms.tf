locals {
  topics = var.alarm_topic_arn == null ? [] : [var.alarm_topic_arn]

  # Where a metric comes from. docs/reference/metrics.md lists our own. A metric has
  # exactly the dimensions that it was written with.
  ours         = { namespace = "orderonce", dimensions = { Scope = local.scope } }
  orders_queue = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.orders.name } }
  dead_queue   = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.dead_letters.name } }
  order        = { namespace = "AWS/Lambda", dimensions = { FunctionName = aws_lambda_function.functions["order"].function_name } }

  ours_by_reason = { for reason in ["mismatch", "key_reused", "misconfigured", "store_unavailable", "provider_unavailable"] : reason =>
    { namespace = "orderonce", dimensions = { Scope = local.scope, Reason = reason } }
  }
  ours_by_setting = { for setting in ["retention", "max_receives", "redrive_target", "dead_letter_retention"] : setting =>
    { namespace = "orderonce", dimensions = { Scope = local.scope, Setting = setting } }
  }
  ours_declined = { namespace = "orderonce", dimensions = { Scope = local.scope, Status = "declined" } }

  # What stops processing at once, for alarms after which nothing may be charged until
  # somebody has looked.
  stop = "Stop processing: aws lambda update-event-source-mapping --no-enabled --region ${data.aws_region.current.region} --uuid ${aws_lambda_event_source_mapping.orders.uuid}, then keep processing = false in Terraform until the cause is found."

  # The queue's attributes that the function checks, and what it needs.
  queue_settings = {
    retention             = "The order queue keeps messages for less time than the function believes: SQS deletes orders before they are parked."
    max_receives          = "The order queue's maxReceiveCount is less than 1,000: SQS may take orders away before the function parks them with a reason."
    redrive_target        = "What the order queue gives up does not go to the dead-letter queue of the function."
    dead_letter_retention = "The dead-letter queue keeps messages no longer than the order queue: SQS deletes parked orders before somebody has looked."
  }

  # Each alarm: what it means and what to do; the metrics, by id; an expression over them
  # unless there is one metric; the threshold that must be exceeded, in how many of how
  # many five-minute periods. An alarm may not SEARCH, so every metric is named. An
  # expression has no result while one of its metrics is missing, and no result is no
  # alarm: so a metric that may never be written appears in numerators only.
  alarms = merge({
    dead-letters = {
      description = "Messages are parked and need a person: their attribute orderonce-reason says why. docs/reference/failures.md."
      metrics     = { m = merge(local.dead_queue, { name = "ApproximateNumberOfMessagesVisible", stat = "Maximum" }) }
      above       = 0
      periods     = [1, 1]
    }
    dead-letters-old = {
      description = "A parked message is older than seven days, and is deleted at fourteen: handle or redrive it."
      metrics     = { m = merge(local.dead_queue, { name = "ApproximateAgeOfOldestMessage", stat = "Maximum" }) }
      above       = 7 * 24 * 60 * 60
      periods     = [1, 1]
    }
    # SQS leaves messages that were received three times or more out of this metric (SQS
    # developer guide, "Available CloudWatch metrics for Amazon SQS"), so it only shows
    # orders that nobody takes. orders-retrying shows the others.
    orders-waiting = {
      description = "An order has waited for more than half an hour and was hardly received: the function is stopped, throttled or too slow."
      metrics     = { m = merge(local.orders_queue, { name = "ApproximateAgeOfOldestMessage", stat = "Maximum" }) }
      above       = 30 * 60
      periods     = [2, 3]
    }
    # One order is redelivered every 15 minutes at the latest, so one period in four is
    # enough, and keeps the alarm on in between.
    orders-retrying = {
      description = "An order has been retried for more than half an hour: see which reason of Redelivered grows. Orders are parked after six days."
      metrics     = { m = merge(local.ours, { name = "WaitingAge", stat = "Maximum" }) }
      above       = 30 * 60 * 1000
      periods     = [1, 4]
    }
    # An outage fails nearly every delivery for as long as it lasts; a passing throttle
    # fails some, or all of them for minutes.
    store-unavailable = {
      description = "DynamoDB fails or throttles a quarter of the deliveries for 15 minutes: see its throttles, the role and the table's name. Orders wait."
      metrics = {
        unavailable = merge(local.ours_by_reason["store_unavailable"], { name = "Redelivered", stat = "Sum" })
        received    = merge(local.ours, { name = "Received", stat = "Sum" })
      }
      expression = "100 * unavailable / received"
      above      = 25
      periods    = [3, 4]
    }
    provider-unavailable = {
      description = "Stripe refuses a quarter of the deliveries for 15 minutes: see its status page, or lower maximum_concurrency. Orders wait."
      metrics = {
        refused  = merge(local.ours_by_reason["provider_unavailable"], { name = "Redelivered", stat = "Sum" })
        received = merge(local.ours, { name = "Received", stat = "Sum" })
      }
      expression = "100 * refused / received"
      above      = 25
      periods    = [3, 4]
    }
    orders-open-long = {
      description = "One order in a hundred took more than ten minutes from sent to settled: Stripe, DynamoDB or concurrency."
      metrics     = { m = merge(local.ours, { name = "OrderAge", stat = "p99" }) }
      above       = 10 * 60 * 1000
      periods     = [2, 3]
    }
    errors = {
      description = "The function crashed, timed out or cannot start. A failed order is not an error of the function: read its log."
      metrics     = { m = merge(local.order, { name = "Errors", stat = "Sum" }) }
      above       = 0
      periods     = [2, 3]
    }
    throttles = {
      description = "Lambda throttles the function: raise reserved_concurrency or the account's limit."
      metrics     = { m = merge(local.order, { name = "Throttles", stat = "Sum" }) }
      above       = 0
      periods     = [3, 5]
    }
    duration = {
      description = "Batches take nearly as long as the function may: look at CallLatency, lower batch_size or raise function_timeout."
      metrics     = { m = merge(local.order, { name = "Duration", stat = "p99" }) }
      above       = 0.8 * 1000 * var.function_timeout
      periods     = [3, 5]
    }
    duplicates = {
      description = "More than a fifth of the deliveries repeat a settled order: a producer sends twice, or acknowledgments get lost."
      metrics = {
        duplicates = merge(local.ours, { name = "Duplicates", stat = "Sum" })
        received   = merge(local.ours, { name = "Received", stat = "Sum" })
      }
      expression = "IF(received >= 50, 100 * duplicates / received, 0)"
      above      = 20
      periods    = [2, 3]
    }
    unknown-outcomes = {
      description = "Stripe gives no readable answer, so money may have moved. The next attempt reads the intent. See Stripe's status page."
      metrics     = { m = merge(local.ours, { name = "Unknown", stat = "Sum" }) }
      above       = 5
      periods     = [2, 3]
    }
    declines = {
      description = "More than 30 percent of the settled orders are declined: card testing, a wrong account, or a bank."
      metrics = {
        declined = merge(local.ours_declined, { name = "Settled", stat = "Sum" })
        settled  = merge(local.ours, { name = "OrderAge", stat = "SampleCount" }) # observed once for each settled order
      }
      expression = "IF(settled >= 20, 100 * declined / settled, 0)"
      above      = 30
      periods    = [2, 3]
    }
    mismatch = {
      description = "An intent belongs to another order, amount or scope: two deployments may share a scope. ${local.stop}"
      metrics     = { m = merge(local.ours_by_reason["mismatch"], { name = "Parked", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    key-reused = {
      description = "Stripe knows an order that the table does not: the table may be a restored one. ${local.stop}"
      metrics     = { m = merge(local.ours_by_reason["key_reused"], { name = "Parked", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    misconfigured = {
      description = "Stripe refuses our key or does not know an intent of ours, or a batch has no time for an order: see the log. Orders wait."
      metrics     = { m = merge(local.ours_by_reason["misconfigured"], { name = "Redelivered", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
    }, {
    # One alarm for each setting, because a sum has no result while one of the four is
    # missing. The function checks once in each new environment, so the alarm stays on for
    # an hour.
    for setting, description in local.queue_settings : "queue-${replace(setting, "_", "-")}" => {
      description = description
      metrics     = { m = merge(local.ours_by_setting[setting], { name = "QueueMisconfigured", stat = "Sum" }) }
      above       = 0
      periods     = [1, 12]
    }
  })
}

resource "aws_cloudwatch_metric_alarm" "alarms" {
  for_each = local.alarms

  alarm_name          = "${local.prefix}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.above
  datapoints_to_alarm = each.value.periods[0]
  evaluation_periods  = each.value.periods[1]
  treat_missing_data  = "notBreaching"
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
        period      = 300
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
