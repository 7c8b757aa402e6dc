# Receipts by e-mail, if create_receipts: rules send order events and the events of SES to a
# queue, and functions/receipt sends at most one e-mail for each paid order. Each refund has one too.
#
# SES itself is not part of the module: receipt_from must be of a verified identity, and
# receipt_configuration_set must publish its events to the default event bus.
# docs/guides/deploy.md has the commands.

locals {
  receipt = {
    enabled = var.create_receipts
    function = {
      description  = "Sends a receipt for each paid order"
      timeout      = 60 # three times ORDER_BUDGET, which is 20 s here
      kms_services = ["dynamodb", "secretsmanager"]
    }
    # A standard queue, because EventBridge delivers in any order. The events of SES contain
    # addresses. Its dead-letter queue gets what the function parks, what EventBridge could not
    # deliver, and what SQS moves, a backstop as on the order queue. Two batches of ten stay
    # near the 14 e-mails per second that SES allows an account out of the sandbox at first.
    queues = { receipts = {
      function    = "receipt"
      visibility  = 360
      concurrency = 2
    } }
    essential = ["receipts-dead-letters", "receipts-waiting", "receipts-retrying", "receipts-doubtful"]
    alarms = merge(local.usual_alarms.receipt, {
      receipts-doubtful = { metric = "app Receipts Sum Function=receipt Result=doubtful", description = <<-EOT
        Nobody knows whether a receipt was sent. It is not sent again unless receipt_mode is at_least_once.
        SES's event may still resolve it, or a person: ${local.runbook}, "A receipt is doubtful".
      EOT
      }
      receipts-dead-letters = {
        metric = "queue/receipts-dead ApproximateNumberOfMessagesVisible Maximum", description = <<-EOT
        Events of receipts are parked, or EventBridge could not deliver them, and their e-mails are not sent:
        ${local.runbook}, "Receipts are not sent".
      EOT
      }
      receipts-failed = {
        metric      = "app Receipts Sum Function=receipt Result=failed", above = 5, periods = [2, 3]
        description = <<-EOT
        SES rejects receipts, or their customers have no address: the account is in the sandbox, paused or
        over its quota, or the sender is not verified. None was sent: ${local.runbook}, "Receipts are not
        sent".
      EOT
      }
      # SES reviews an account at 5 percent of bounces (SES developer guide, "Reputation
      # dashboard"). Bounces may come long after their receipts, so a period is an hour.
      receipts-bounced = {
        metrics = {
          bounced = "app Receipts Sum Function=receipt Result=bounced"
          sent    = "app Receipts Sum Function=receipt Result=sent"
        }
        expression  = "IF(sent >= 20, 100 * bounced / sent, 0)", above = 5, periods = [1, 2], period = 60 * 60
        description = <<-EOT
        More than 5 percent of the receipts of an hour bounced. SES may pause the account: look at the
        addresses at Stripe: ${local.runbook}, "Receipts are not sent".
      EOT
      }
    })
  }

  receipt_environment = !var.create_receipts ? null : {
    RECEIPTS_TABLE            = aws_dynamodb_table.receipts[0].name
    QUEUE_URL                 = aws_sqs_queue.queues["receipts"].url
    DEAD_LETTER_QUEUE_URL     = aws_sqs_queue.dead_letters["receipts-dead"].url
    SCOPE                     = local.scope
    STRIPE_SECRET_ARN         = local.stripe_keys.receipt.arn
    RECEIPT_FROM              = var.receipt_from
    RECEIPT_CONFIGURATION_SET = var.receipt_configuration_set
    RECEIPTS                  = var.receipt_mode
  }

  # No access to the orders table: an event has all that a receipt needs, except the address,
  # which is at Stripe.
  receipt_statements = !var.create_receipts ? null : {
    ReceiveReceiptEvents = { Action = local.receiving, Resource = aws_sqs_queue.queues["receipts"].arn }
    ParkReceiptEvents    = { Action = local.parking, Resource = aws_sqs_queue.dead_letters["receipts-dead"].arn }
    WriteReceipts = {
      Action   = ["dynamodb:GetItem", "dynamodb:PutItem"]
      Resource = aws_dynamodb_table.receipts[0].arn
    }
    SendReceipts = {
      Action    = "ses:SendEmail"
      Resource  = local.receipt_mail_arns
      Condition = { StringEquals = { "ses:FromAddress" = local.receipt_address } }
    }
  }

  receipt_sources = { for name, source in {
    orders = {
      description = "Sends the events of orders of ${local.prefix} to the receipt queue"
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
  arn            = aws_sqs_queue.queues["receipts"].arn

  # EventBridge retries for 24 hours, then drops the event. If the rule may not send to the
  # queue, it does not even retry.
  dead_letter_config {
    arn = aws_sqs_queue.dead_letters["receipts-dead"].arn
  }
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
  depends_on = [aws_iam_role_policy.keys, aws_sqs_queue.queues, aws_sqs_queue.dead_letters]
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
