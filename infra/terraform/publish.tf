# Order events for other systems. The table's stream invokes functions/publish, which puts
# each event row on the event bus. docs/guides/hear-about-orders.md says how to subscribe.

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
      destination_arn = aws_sqs_queue.unpublished.arn
    }
  }

  # Lambda rejects a mapping whose function is not allowed to read the stream or to send to
  # the queue.
  depends_on = [aws_iam_role_policy.publish]
}

# Positions of records in the stream that were not published: metadata without their content.
# docs/guides/operate.md, "Events were not published", says how to publish the rows.
resource "aws_sqs_queue" "unpublished" {
  name                      = "${local.prefix}-unpublished"
  message_retention_seconds = 14 * 24 * 60 * 60

  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300

  depends_on = [aws_iam_role_policy.keys]
}

# An example subscriber: a rule sends each Order Paid to a queue. Copy it for a consumer of
# your own. It is off by default, because nothing reads the queue.
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
  arn            = aws_sqs_queue.paid[0].arn

  # EventBridge retries for 24 hours, then drops the event. If the rule may not send to the
  # queue, it does not even retry.
  dead_letter_config {
    arn = aws_sqs_queue.paid_dead[0].arn
  }
}

# Both queues are encrypted with a key of SQS, for the same reason as the bus.
resource "aws_sqs_queue" "paid" {
  count = var.create_example_subscriber ? 1 : 0

  name                      = "${local.prefix}-paid"
  message_retention_seconds = 7 * 24 * 60 * 60
  receive_wait_time_seconds = 20
  sqs_managed_sse_enabled   = true

  # An event that the consumer fails on goes to the same queue as one that EventBridge could
  # not deliver.
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.paid_dead[0].arn
    maxReceiveCount     = 20
  })
}

resource "aws_sqs_queue" "paid_dead" {
  count = var.create_example_subscriber ? 1 : 0

  name                      = "${local.prefix}-paid-dead"
  message_retention_seconds = 14 * 24 * 60 * 60
  sqs_managed_sse_enabled   = true
}

# Only this rule may send to the two queues. Principals of this account need an IAM policy,
# for example to redrive.
resource "aws_sqs_queue_policy" "paid" {
  for_each = var.create_example_subscriber ? {
    queue        = aws_sqs_queue.paid[0]
    dead_letters = aws_sqs_queue.paid_dead[0]
  } : {}

  queue_url = each.value.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "RuleSendsPaidOrders"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = each.value.arn
        Condition = {
          ArnEquals    = { "aws:SourceArn" = aws_cloudwatch_event_rule.paid[0].arn }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        }
      },
      {
        Sid       = "DenyPaidOrdersWithoutTLS"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = local.message_actions
        Resource  = each.value.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

locals {
  # The function writes this source into each event.
  event_source = "orderonce.${local.scope}"
}
