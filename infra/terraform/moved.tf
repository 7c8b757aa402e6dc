# The addresses of earlier releases, so that an apply renames in the state what it would otherwise
# replace: queues with their messages, and the policies of roles that work.

moved {
  from = aws_sqs_queue.orders
  to   = aws_sqs_queue.queues["orders"]
}
moved {
  from = aws_sqs_queue.dead_letters
  to   = aws_sqs_queue.dead_letters["orders-dead"]
}
moved {
  from = aws_sqs_queue.unpublished
  to   = aws_sqs_queue.dead_letters["unpublished"]
}
moved {
  from = aws_sqs_queue.receipts[0]
  to   = aws_sqs_queue.queues["receipts"]
}
moved {
  from = aws_sqs_queue.receipts_dead[0]
  to   = aws_sqs_queue.dead_letters["receipts-dead"]
}
moved {
  from = aws_sqs_queue.paid[0]
  to   = aws_sqs_queue.queues["paid"]
}
moved {
  from = aws_sqs_queue.paid_dead[0]
  to   = aws_sqs_queue.dead_letters["paid-dead"]
}
moved {
  from = aws_sqs_queue_policy.orders
  to   = aws_sqs_queue_policy.queues["orders"]
}
moved {
  from = aws_sqs_queue_policy.dead_letters
  to   = aws_sqs_queue_policy.queues["orders-dead"]
}
moved {
  from = aws_sqs_queue_policy.unpublished
  to   = aws_sqs_queue_policy.queues["unpublished"]
}
moved {
  from = aws_sqs_queue_policy.receipts["queue"]
  to   = aws_sqs_queue_policy.queues["receipts"]
}
moved {
  from = aws_sqs_queue_policy.receipts["dead_letters"]
  to   = aws_sqs_queue_policy.queues["receipts-dead"]
}
moved {
  from = aws_sqs_queue_policy.paid["queue"]
  to   = aws_sqs_queue_policy.queues["paid"]
}
moved {
  from = aws_sqs_queue_policy.paid["dead_letters"]
  to   = aws_sqs_queue_policy.queues["paid-dead"]
}
moved {
  from = aws_sqs_queue_redrive_allow_policy.dead_letters
  to   = aws_sqs_queue_redrive_allow_policy.dead_letters["orders-dead"]
}
moved {
  from = aws_sqs_queue_redrive_allow_policy.receipts_dead[0]
  to   = aws_sqs_queue_redrive_allow_policy.dead_letters["receipts-dead"]
}
moved {
  from = aws_lambda_event_source_mapping.orders
  to   = aws_lambda_event_source_mapping.queues["orders"]
}
moved {
  from = aws_lambda_event_source_mapping.receipts[0]
  to   = aws_lambda_event_source_mapping.queues["receipts"]
}
moved {
  from = aws_iam_role_policy.order
  to   = aws_iam_role_policy.functions["order"]
}
moved {
  from = aws_iam_role_policy.webhook[0]
  to   = aws_iam_role_policy.functions["webhook"]
}
moved {
  from = aws_iam_role_policy.reconcile
  to   = aws_iam_role_policy.functions["reconcile"]
}
moved {
  from = aws_iam_role_policy.publish
  to   = aws_iam_role_policy.functions["publish"]
}
moved {
  from = aws_iam_role_policy.intake[0]
  to   = aws_iam_role_policy.functions["intake"]
}
moved {
  from = aws_iam_role_policy.receipt[0]
  to   = aws_iam_role_policy.functions["receipt"]
}
moved {
  from = aws_iam_role_policy.keys[0]
  to   = aws_iam_role_policy.keys["order"]
}
