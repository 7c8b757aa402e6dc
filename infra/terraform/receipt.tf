# Receipts by e-mail, if create_receipts: rules send order events and the events of SES to a
# queue, and functions/receipt sends at most one e-mail for each paid order and each refund.
#
# SES itself is not part of the module: receipt_from must be of a verified identity, and
# receipt_configuration_set must publish its events to the default event bus.
# docs/guides/deploy.md has the commands.

locals {
  receipt_sources = { for name, source in {
    orders = {
      description = "Sends the paid and refunded orders of ${local.prefix} to the receipt queue"
      bus         = aws_cloudwatch_event_bus.orders.name
      pattern = {
        source        = [local.event_source]
        "detail-type" = ["Order Paid", "Refund Succeeded"]
      }
    }
    # SES publishes to the default bus only, and tags each event with the configuration set
    # (SES developer guide, "Monitoring SES events using Amazon EventBridge"). Delivery is
    # best effort: a doubtful receipt may never be resolved by an event.
    mail = {
      description = "Sends the events of receipts of ${local.prefix} to the receipt queue"
      bus         = "default"
      pattern = {
        source = ["aws.ses"]
        "detail-type" = [
          "Email Sent", "Email Delivered", "Email Bounced", "Email Complaint Received", "Email Rejected",
          "Email Rendering Failed",
        ]
        detail = { mail = { tags = { "ses:configuration-set" = [var.receipt_configuration_set] } } }
      }
    }
  } : name => source if var.create_receipts }
}

resource "aws_cloudwatch_event_rule" "receipts" {
  for_each = local.receipt_sources

  name           = "${local.prefix}-receipts-${each.key}"
  description    = each.value.description
  event_bus_name = each.value.bus
  event_pattern  = jsonencode(each.value.pattern)
}

resource "aws_cloudwatch_event_target" "receipts" {
  for_each = local.receipt_sources

  rule           = aws_cloudwatch_event_rule.receipts[each.key].name
  event_bus_name = each.value.bus
  arn            = aws_sqs_queue.receipts[0].arn

  # EventBridge retries for 24 hours, then drops the event. If the rule may not send to the
  # queue, it does not even retry.
  dead_letter_config {
    arn = aws_sqs_queue.receipts_dead[0].arn
  }
}

# Both queues are standard, because EventBridge delivers in any order, and encrypted with a
# key of SQS, because EventBridge could use a key of yours only if its key policy allowed
# that. The events of SES contain addresses.
resource "aws_sqs_queue" "receipts" {
  count = var.create_receipts ? 1 : 0

  name                       = "${local.prefix}-receipts"
  visibility_timeout_seconds = 6 * local.functions["receipt"].timeout
  message_retention_seconds  = 7 * 24 * 60 * 60
  receive_wait_time_seconds  = 20
  sqs_managed_sse_enabled    = true

  # A backstop, as on the order queue: the function itself parks with a reason.
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.receipts_dead[0].arn
    maxReceiveCount     = 1000
  })
}

# What the function parks, what EventBridge could not deliver, and the backstop.
resource "aws_sqs_queue" "receipts_dead" {
  count = var.create_receipts ? 1 : 0

  name                      = "${local.prefix}-receipts-dead"
  message_retention_seconds = 14 * 24 * 60 * 60
  receive_wait_time_seconds = 20
  max_message_size          = 1024 * 1024 # an event plus the attributes of a parked message
  sqs_managed_sse_enabled   = true
}

resource "aws_sqs_queue_redrive_allow_policy" "receipts_dead" {
  count = var.create_receipts ? 1 : 0

  queue_url = aws_sqs_queue.receipts_dead[0].url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.receipts[0].arn]
  })
}

# Both rules may send to both queues. Principals of this account need an IAM policy, for
# example to redrive.
resource "aws_sqs_queue_policy" "receipts" {
  for_each = var.create_receipts ? {
    queue        = aws_sqs_queue.receipts[0]
    dead_letters = aws_sqs_queue.receipts_dead[0]
  } : {}

  queue_url = each.value.url
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "RulesSendReceiptEvents"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = each.value.arn
        Condition = {
          ArnEquals = {
            "aws:SourceArn" = [for rule in values(aws_cloudwatch_event_rule.receipts) : rule.arn]
          }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        }
      },
      {
        Sid       = "DenyReceiptEventsWithoutTLS"
        Effect    = "Deny"
        Principal = { AWS = local.account }
        Action    = local.message_actions
        Resource  = each.value.arn
        Condition = { Bool = { "aws:SecureTransport" = "false" } }
      },
    ]
  })
}

# No filter_criteria, as for the order queue. Two batches of ten stay near the 14 e-mails per
# second that SES allows an account out of the sandbox at first.
resource "aws_lambda_event_source_mapping" "receipts" {
  count = var.create_receipts ? 1 : 0

  enabled                 = true # an apply enables a mapping that was disabled by hand
  event_source_arn        = aws_sqs_queue.receipts[0].arn
  function_name           = aws_lambda_alias.live["receipt"].arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = 2
  }

  metrics_config {
    metrics = ["EventCount"]
  }

  # Lambda rejects a mapping whose function is not allowed to read the queue.
  depends_on = [aws_iam_role_policy.receipt]
}

# One row for each receipt. It prevents a second e-mail, so it never expires.
resource "aws_dynamodb_table" "receipts" {
  count = var.create_receipts ? 1 : 0

  name                        = "${local.prefix}-receipts"
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "orderId"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "orderId"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "doubtful"
    type = "S"
  }

  attribute {
    name = "updatedAt"
    type = "N"
  }

  # Receipts of which nobody knows whether they were sent. Sparse: no other has the attribute
  # doubtful.
  global_secondary_index {
    name            = "doubtful"
    projection_type = "ALL"

    key_schema {
      attribute_name = "doubtful"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "updatedAt"
      key_type       = "RANGE"
    }
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null # false: encrypted with a key that AWS owns
    kms_key_arn = var.kms_key_arn
  }

  # Without create_receipts, delete the table before the queues: while it is protected, the
  # apply fails there, and the queues keep their messages.
  depends_on = [aws_iam_role_policy.keys, aws_sqs_queue.receipts, aws_sqs_queue.receipts_dead]
}

locals {
  # The address of receipt_from without a name.
  receipt_address  = try(regex("<(.+)>$", var.receipt_from)[0], var.receipt_from)
  receipt_identity = coalesce(var.receipt_identity, try(split("@", local.receipt_address)[1], "none"))

  # SES checks the permission for the identity and for the configuration set of a request.
  receipt_mail_arns = [for resource in [
    "identity/${local.receipt_identity}",
    "configuration-set/${coalesce(var.receipt_configuration_set, "none")}",
  ] : join(":", ["arn", local.partition, "ses", local.deployment.region, local.deployment.account, resource])]
}
