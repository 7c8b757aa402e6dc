locals {
  queue_type   = var.fifo ? "FIFO" : "standard"
  queue_suffix = var.fifo ? ".fifo" : ""
}

resource "aws_sqs_queue" "orders" {
  name                       = "${local.prefix}-orders${local.queue_suffix}"
  visibility_timeout_seconds = var.visibility_timeout
  message_retention_seconds  = 7 * 24 * 60 * 60
  receive_wait_time_seconds  = 20

  # The function reads bodies of up to 256 KiB. Twice that leaves room for attributes, also for those of a parked message that
  # is redriven, and ten messages still fit into the 6 MB of one invocation.
  max_message_size = 512 * 1024

  # The code parks with a reason, after six days at the latest. This catches what it cannot: messages that kill the function, and all
  # of them while it cannot start. It is the most that SQS allows (SQS developer guide, "Configure a dead-letter queue using the Amazon
  # SQS console"), because every delivery counts, also in an outage: with 50, one of eight hours would take every order away without a
  # reason. A function that cannot start uses up one receive a visibility time-out, so 1,000 last 50 hours.
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = 1000
  })

  fifo_queue                  = var.fifo ? true : null
  content_based_deduplication = var.fifo ? true : null # the same body within 5 minutes is the same order
  deduplication_scope         = var.fifo ? "messageGroup" : null
  fifo_throughput_limit       = var.fifo ? "perMessageGroupId" : null

  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300

  lifecycle {
    # Lambda developer guide, "Configuring a queue to use with Lambda": less, and a slow batch is delivered again while it runs.
    precondition {
      condition     = var.visibility_timeout >= 6 * var.function_timeout
      error_message = "visibility_timeout is ${var.visibility_timeout}, want at least 6 x function_timeout = ${6 * var.function_timeout}."
    }
  }

  depends_on = [aws_iam_role_policy.keys]
}

resource "aws_sqs_queue" "dead_letters" {
  name = "${local.prefix}-orders-dead${local.queue_suffix}"

  # As long as SQS allows: on a standard queue a dead letter keeps its age, so less than the order queue's could be nothing at all.
  message_retention_seconds = 14 * 24 * 60 * 60
  receive_wait_time_seconds = 20
  max_message_size          = 1024 * 1024 # whatever the order queue took fits, with the attributes that parking adds

  fifo_queue                  = var.fifo ? true : null
  content_based_deduplication = var.fifo ? false : null # the function says which message it parks
  deduplication_scope         = var.fifo ? "messageGroup" : null
  fifo_throughput_limit       = var.fifo ? "perMessageGroupId" : null

  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 300

  depends_on = [aws_iam_role_policy.keys]
}

# A resource of its own, because each queue names the other.
resource "aws_sqs_queue_redrive_allow_policy" "dead_letters" {
  queue_url = aws_sqs_queue.dead_letters.url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.orders.arn]
  })
}
