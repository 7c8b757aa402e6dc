locals {
  queue_type   = var.fifo ? "FIFO" : "standard"
  queue_suffix = var.fifo ? ".fifo" : ""
}

resource "aws_sqs_queue" "orders" {
  name                       = "${local.prefix}-orders${local.queue_suffix}"
  visibility_timeout_seconds = var.visibility_timeout
  message_retention_seconds  = 7 * 24 * 60 * 60
  receive_wait_time_seconds  = 20

  # The function reads bodies of up to 256 KiB. Twice that leaves room for attributes,
  # also for those of a redriven message, and ten messages still fit into the 6 MB of one
  # invocation.
  max_message_size = 512 * 1024

  # A backstop: the function itself parks with a reason, after six days at the latest. SQS
  # moves only messages that kill the function, or all of them while it cannot start.
  # 1,000 is the maximum of SQS (SQS developer guide, "Configure a dead-letter queue using
  # the Amazon SQS console"), because deliveries in an outage count as well: with 50, an
  # outage of eight hours would park every order without a reason. A function that cannot
  # start uses one receive per visibility timeout, so 1,000 receives last 50 hours.
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = 1000
  })

  fifo_queue                  = var.fifo ? true : null
  content_based_deduplication = var.fifo ? true : null # SQS drops the same body within 5 minutes
  deduplication_scope         = var.fifo ? "messageGroup" : null
  fifo_throughput_limit       = var.fifo ? "perMessageGroupId" : null

  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300

  lifecycle {
    # With less, SQS would deliver a slow batch again while it is processed (Lambda
    # developer guide, "Configuring a queue to use with Lambda").
    precondition {
      condition     = var.visibility_timeout >= 6 * var.function_timeout
      error_message = "visibility_timeout: must be at least ${6 * var.function_timeout}, 6 x function_timeout"
    }
  }

  depends_on = [aws_iam_role_policy.keys]
}

resource "aws_sqs_queue" "dead_letters" {
  name = "${local.prefix}-orders-dead${local.queue_suffix}"

  # The maximum of SQS. On a standard queue a message keeps its age when it is moved, so a
  # retention like the order queue's would leave no time to handle it.
  message_retention_seconds = 14 * 24 * 60 * 60
  receive_wait_time_seconds = 20
  max_message_size          = 1024 * 1024 # an order message plus the attributes of a parked one

  fifo_queue                  = var.fifo ? true : null
  content_based_deduplication = var.fifo ? false : null # the function sends a deduplication id
  deduplication_scope         = var.fifo ? "messageGroup" : null
  fifo_throughput_limit       = var.fifo ? "perMessageGroupId" : null

  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300

  depends_on = [aws_iam_role_policy.keys]
}

# A separate resource, because the two queues refer to each other.
resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.orders.arn]
  })
}
