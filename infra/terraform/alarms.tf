locals {
  topics = var.alarm_topic_arn == null ? [] : [var.alarm_topic_arn]

  # Where a metric comes from. docs/reference/metrics.md lists our own. A metric has exactly the dimensions that it was written with.
  ours         = { namespace = "orderonce", dimensions = { Scope = local.scope } }
  orders_queue = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.orders.name } }
  dead_queue   = { namespace = "AWS/SQS", dimensions = { QueueName = aws_sqs_queue.dead_letters.name } }
  order        = { namespace = "AWS/Lambda", dimensions = { FunctionName = aws_lambda_function.functions["order"].function_name } }

  ours_by_reason = { for reason in ["mismatch", "key_reused", "misconfigured"] : reason =>
    { namespace = "orderonce", dimensions = { Scope = local.scope, Reason = reason } }
  }
  ours_declined = { namespace = "orderonce", dimensions = { Scope = local.scope, Status = "declined" } }

  # What stops processing at once, for alarms after which nothing may be charged until somebody has looked.
  stop = "Stop processing: aws lambda update-event-source-mapping --no-enabled --region ${data.aws_region.current.region} --uuid ${aws_lambda_event_source_mapping.orders.uuid}, then keep processing = false in Terraform until the cause is found."

  # Each alarm: what it means and what to do; the metrics, by id; an expression over them unless there is one metric; above which
  # value, in how many of how many five-minute periods. An alarm may not SEARCH, so every metric is named. Whatever is missing
  # from an expression makes its result missing, which is no alarm: so a metric that may never be written stands in numerators only.
  alarms = {
    dead-letters = {
      description = "Somebody has to look at parked messages: their attribute orderonce-reason says why. docs/reference/failures.md."
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
    orders-waiting = {
      description = "An order has waited for more than half an hour: see which reason of Redelivered grows. They park at six days."
      metrics     = { m = merge(local.orders_queue, { name = "ApproximateAgeOfOldestMessage", stat = "Maximum" }) }
      above       = 30 * 60
      periods     = [2, 3]
    }
    orders-open-long = {
      description = "One order in a hundred took more than ten minutes from sent to settled: Stripe, DynamoDB or concurrency."
      metrics     = { m = merge(local.ours, { name = "OrderAge", stat = "p99" }) }
      above       = 10 * 60 * 1000
      periods     = [2, 3]
    }
    errors = {
      description = "The function crashed, timed out or cannot start. It never fails by itself: read its log."
      metrics     = { m = merge(local.order, { name = "Errors", stat = "Sum" }) }
      above       = 0
      periods     = [2, 3]
    }
    throttles = {
      description = "The function is not let run: raise reserved_concurrency or the account's limit."
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
      description = "Stripe does not answer readably, so money may have moved. The next attempt reads the intent. See Stripe's status."
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
      description = "Stripe refuses our key or does not know an intent of ours, or a batch has no time for an order: see its log. Orders wait."
      metrics     = { m = merge(local.ours_by_reason["misconfigured"], { name = "Redelivered", stat = "Sum" }) }
      above       = 0
      periods     = [1, 1]
    }
  }
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
