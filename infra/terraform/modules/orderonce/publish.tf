# Order events for other systems. The table's stream invokes functions/publish, which puts
# each event row on the event bus. docs/guides/hear-about-orders.md says how to subscribe.

locals {
  # The function writes this source into each event.
  event_source = "orderonce.${local.scope}"

  publish = {
    function = {
      description  = "Publishes the events of orders"
      timeout      = 30 # a batch of one order's events needs a call for each
      kms_services = ["dynamodb", "sqs"]
    }
    essential = ["publish-behind", "publish-silent", "events-unpublished"]
    alarms = merge(local.usual_alarms.publish, {
      # The age of the newest record of each batch, also of one that is retried. The
      # stream forgets a record after 24 hours.
      publish-behind = {
        metric      = "lambda/publish IteratorAge Maximum", above = 15 * 60 * 1000, periods = [2, 3]
        description = <<-EOT
        Order events are published more than 15 minutes late: EventBridge refuses them or does not respond, or
        the function fails. Consumers wait; no order is affected. Nothing is lost for 22 hours:
        ${local.runbook}, "Events are published late".
      EOT
      }
      # IteratorAge has no value if nothing reads the stream. An event is published within
      # seconds, so at most the last order of an hour raises a false alarm.
      publish-silent = {
        metrics    = { paid = "app Settled Sum Status=paid", published = "app Published Sum" }
        expression = "IF(FILL(published, 0) == 0, paid, 0)", period = 60 * 60, description = <<-EOT
        Orders were paid in an hour in which no event was published: nothing reads the table's stream. Its
        event source mapping may be disabled or deleted. The stream forgets events after 24 hours:
        ${local.runbook}, "Events are published late".
      EOT
      }
      events-unreadable = { metric = "app Unpublished Sum Reason=unreadable", description = <<-EOT
        The publish function skipped an event row that it cannot read: somebody wrote or changed it by hand.
        Consumers miss the event: ${local.runbook}, "Events are published late".
      EOT
      }
      events-unpublished = {
        metric = "queue/unpublished ApproximateNumberOfMessagesVisible Maximum", description = <<-EOT
        Order events were not published within 22 hours, and Lambda has given up. Their rows are still in the
        table. Publish them by hand: ${local.runbook}, "Events were not published".
      EOT
      }
    })
  }

  publish_environment = {
    EVENT_BUS = aws_cloudwatch_event_bus.orders.name
    SCOPE     = local.scope
  }

  # No access to the table, its index or Stripe: an event is complete in the stream.
  publish_statements = {
    ReadStream = {
      Action = [
        "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams",
      ]
      Resource = aws_dynamodb_table.orders.stream_arn
    }
    PublishEvents = { Action = "events:PutEvents", Resource = aws_cloudwatch_event_bus.orders.arn }
    ReportUnpublished = {
      Action   = "sqs:SendMessage"
      Resource = aws_sqs_queue.dead_letters["unpublished"].arn
    }
  }

  # An example subscriber: a rule sends each Order Paid to a queue. Copy it for a consumer of
  # your own. It is off by default, because nothing reads the queue. An event that the consumer
  # fails on goes to the same queue as one that EventBridge could not deliver.
  paid = {
    enabled   = var.create_example_subscriber
    queues    = { paid = { receives = 20 } }
    essential = ["subscriber-dead-letters"]
    alarms = {
      subscriber-dead-letters = {
        metric = "queue/paid-dead ApproximateNumberOfMessagesVisible Maximum", description = <<-EOT
        Events of the example subscriber are in its dead-letter queue: EventBridge could not deliver them, or
        the consumer failed on them. ${local.runbook}, "A subscriber misses events".
      EOT
      }
    }
  }
}

# Encrypted with a key that AWS owns, also with kms_key_arn: events contain no customer
# data, and EventBridge could use a key of yours only if its key policy allowed that.
# Without a resource policy, only principals of this account can put events on the bus.
resource "aws_cloudwatch_event_bus" "orders" {
  name        = "${local.prefix}-orders"
  description = "Order events of ${local.prefix}"
}

# A new consumer, or one that had a bug, gets past events by a replay. The archive excludes
# replayed events.
resource "aws_cloudwatch_event_archive" "orders" {
  name             = "${local.prefix}-orders"
  description      = "Order events of ${local.prefix}, for replays"
  event_source_arn = aws_cloudwatch_event_bus.orders.arn
  # Forever is a hundred years, because the provider does not send 0: it would change nothing.
  retention_days = var.event_archive_days == 0 ? 36500 : var.event_archive_days
}

# A failed record blocks its shard, so that the events of an order are published in order.
# Lambda retries it until the cause is gone or the record is 22 hours old. The stream would
# drop it at 24 hours without a trace (DynamoDB developer guide, "Change data capture for
# DynamoDB Streams"). Before that, Lambda sends its position to the queue unpublished. The
# event row itself stays in the table for 90 days.
resource "aws_lambda_event_source_mapping" "publish" {
  enabled           = true # an apply enables a mapping that was disabled by hand
  event_source_arn  = aws_dynamodb_table.orders.stream_arn
  function_name     = aws_lambda_alias.live["publish"].arn
  starting_position = "TRIM_HORIZON" # LATEST would miss events that precede the mapping
  batch_size        = 100

  function_response_types        = ["ReportBatchItemFailures"]
  bisect_batch_on_function_error = true # a batch that kills the function is split
  maximum_retry_attempts         = -1   # no limit: an outage must not use up the attempts
  maximum_record_age_in_seconds  = 22 * 60 * 60
  parallelization_factor         = 1

  # Unlike on the order queue, a filter is right here: it drops records, and the order rows,
  # changes and expirations that it drops are not events. They cost no invocation.
  filter_criteria {
    filter {
      pattern = jsonencode({
        eventName = ["INSERT"]
        dynamodb  = { Keys = { sk = { S = [{ prefix = "event#" }] } } }
      })
    }
  }

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.dead_letters["unpublished"].arn
    }
  }

  # Lambda rejects a mapping whose function is not allowed to read the stream or to send to
  # the queue.
  depends_on = [aws_iam_role_policy.functions]
}

resource "aws_cloudwatch_event_rule" "paid" {
  count = var.create_example_subscriber ? 1 : 0

  name           = "${local.prefix}-paid"
  description    = "Sends the paid orders of ${local.prefix} to a queue"
  event_bus_name = aws_cloudwatch_event_bus.orders.name
  event_pattern = jsonencode({
    source        = [local.event_source]
    "detail-type" = ["Order Paid"]
  })
}

resource "aws_cloudwatch_event_target" "paid" {
  count = var.create_example_subscriber ? 1 : 0

  rule           = aws_cloudwatch_event_rule.paid[0].name
  event_bus_name = aws_cloudwatch_event_bus.orders.name
  arn            = aws_sqs_queue.queues["paid"].arn

  # EventBridge retries for 24 hours, then drops the event. If the rule may not send to the
  # queue, it does not even retry.
  dead_letter_config {
    arn = aws_sqs_queue.dead_letters["paid-dead"].arn
  }
}
