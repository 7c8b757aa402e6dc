# Refunds, unless create_refund is false: functions/refund makes each refund of its queue once.
# It alone may give money back, and with stripe_refund_key its Stripe key alone can.

locals {
  refund = {
    enabled = var.create_refund
    function = {
      description  = "Gives money of orders back once"
      timeout      = 30 # three times ORDER_BUDGET
      kms_services = ["sqs", "dynamodb", "secretsmanager"]
    }
    queues = { refunds = merge(local.produced_queue, {
      function    = "refund"
      sender      = "refund"
      visibility  = 180
      concurrency = 2
    }) }
    essential = ["refunds-dead-letters", "refunds-waiting", "refunds-retrying", "refund-unknown"]
    alarms = merge(local.usual_alarms.refund, {
      # The reconcile function finds an unknown refund at least once a day, as orders-waiting-*.
      refund-unknown = {
        metrics = {
          parked = "app Parked Sum Function=refund Reason=refund_unknown"
          still  = "app RefundsUnknown Sum"
        }
        expression  = "FILL(parked, 0) + FILL(still, 0)", periods = [1, 26], period = 60 * 60
        description = <<-EOT
        Nobody knows whether a refund was made, and it is not sent again. The customer waits, and the amount
        stays reserved, until a person has compared it with Stripe. List them with orders refund list:
        docs/guides/refund.md, "Resolve an unknown refund". The alarm stays on for up to 26 hours after the
        last one is resolved.
      EOT
      }
      # After a request for a refund the message comes back when its lease ends, every 15
      # minutes, so one breaching period in four keeps the alarm on in between.
      refund-mismatch = {
        metrics = {
          parked   = "app Parked Sum Function=refund Reason=mismatch"
          returned = "app Redelivered Sum Function=refund Reason=mismatch"
          reused   = "app Parked Sum Function=refund Reason=key_reused"
        }
        expression  = "FILL(parked, 0) + FILL(returned, 0) + FILL(reused, 0)", periods = [1, 4]
        description = <<-EOT
        Stripe has another refund or another request under the ids of ours: somebody edited its metadata, two
        deployments share a scope, or a row was lost. Compare the two before anything else: ${local.runbook},
        "A refund does not match".
      EOT
      }
      refunds-dead-letters = {
        metric = "queue/refunds-dead ApproximateNumberOfMessagesVisible Maximum", description = <<-EOT
        Refunds are parked in their dead-letter queue and need a person. Read orderonce-reason of each message
        and follow ${local.runbook}, "A message is parked".
      EOT
      }
    })
  }

  refund_environment = !var.create_refund ? null : {
    ORDERS_TABLE          = aws_dynamodb_table.orders.name
    QUEUE_URL             = aws_sqs_queue.queues["refunds"].url
    DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters["refunds-dead"].url
    SCOPE                 = local.scope
    STRIPE_SECRET_ARN     = local.stripe_keys.refund.arn
  }

  refund_statements = !var.create_refund ? null : {
    ReceiveRefunds = { Action = local.receiving, Resource = aws_sqs_queue.queues["refunds"].arn }
    ParkRefunds    = { Action = local.parking, Resource = aws_sqs_queue.dead_letters["refunds-dead"].arn }
    WriteRefunds = {
      Action   = ["dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:PutItem"]
      Resource = aws_dynamodb_table.orders.arn
    }
  }
}
