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
    queues = { orders = merge(local.produced_queue, {
      function            = "order"
      sender              = "order"
      visibility          = var.visibility_timeout
      batch_size          = var.batch_size
      concurrency         = local.concurrent_batches
      provisioned_pollers = var.provisioned_pollers
    }) }
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
      ReceiveOrders = { Action = local.receiving, Resource = aws_sqs_queue.queues["orders"].arn }
      ParkMessages  = { Action = local.parking, Resource = aws_sqs_queue.dead_letters["orders-dead"].arn }
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
