# The orders: functions/order charges each order of the queue. The table is in table.tf.
locals {
  order = {
    function = {
      description  = "Charges each order exactly once"
      timeout      = var.function_timeout
      memory_size  = var.memory_size
      reserved     = var.reserved_concurrency
      kms_services = ["sqs", "dynamodb", "secretsmanager"]
    }
    queues = { orders = {
      function            = "order"
      sender              = "order"
      visibility          = var.visibility_timeout
      enabled             = var.processing
      batch_size          = var.batch_size
      concurrency         = local.concurrent_batches
      provisioned_pollers = var.provisioned_pollers
      fifo                = var.fifo
      kms_key             = var.kms_key_arn

      # The function reads bodies of up to 256 KiB. Twice that leaves room for attributes,
      # also for those of a redriven message, and ten messages still fit into the 6 MB of one
      # invocation.
      max_size = 512 * 1024

      # A backstop: the function itself parks with a reason, after six days at the latest. SQS
      # moves only messages that kill the function, or all of them while it cannot start.
      # 1,000 is the maximum of SQS (SQS developer guide, "Configure a dead-letter queue using
      # the Amazon SQS console"), because deliveries in an outage count as well: with 50, an
      # outage of eight hours would park every order without a reason. A function that cannot
      # start uses one receive per visibility timeout, so 1,000 receives last 50 hours.
      receives = 1000
    } }
    essential = [
      "dead-letters", "orders-waiting", "orders-retrying", "misconfigured", "mismatch", "key-reused",
      "refunded-outside",
    ]
    alarms = local.order_alarms
  }

  # A provisioned poller runs up to ten batches concurrently (Lambda developer guide,
  # "Using provisioned mode with an Amazon SQS event source mapping").
  concurrent_batches = (
    var.provisioned_pollers == null ? var.maximum_concurrency : 10 * var.provisioned_pollers.maximum
  )

  order_environment = merge({
    ORDERS_TABLE          = aws_dynamodb_table.orders.name
    QUEUE_URL             = aws_sqs_queue.queues["orders"].url
    DEAD_LETTER_QUEUE_URL = aws_sqs_queue.dead_letters["orders-dead"].url
    SCOPE                 = local.scope
    STRIPE_SECRET_ARN     = local.stripe_keys.order.arn
    QUEUE_RETENTION       = "${aws_sqs_queue.queues["orders"].message_retention_seconds}s"
    STRIPE_TIMEOUT        = "8s"
    ORDER_BUDGET          = "10s"
    PARALLEL_ORDERS       = tostring(var.batch_size)
  }, local.stock_environment)

  order_statements = merge(
    {
      ReceiveOrders = {
        Action = [
          "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes",
        ]
        Resource = aws_sqs_queue.queues["orders"].arn
      }
      ParkMessages = {
        Action   = ["sqs:SendMessage", "sqs:GetQueueAttributes"]
        Resource = aws_sqs_queue.dead_letters["orders-dead"].arn
      }
      WriteOrders = {
        Action   = ["dynamodb:UpdateItem", "dynamodb:PutItem", "dynamodb:Query"]
        Resource = aws_dynamodb_table.orders.arn
      }
    },
    local.stock_statements,
    { for table in aws_dynamodb_table.stock : "LoadDeclinedOrders" => {
      Action   = "dynamodb:Query"
      Resource = aws_dynamodb_table.orders.arn
    } },
  )
}
