# Distinct values of each instance, so that a permission for another queue, or a trigger of another
# function, fails its test.

override_resource {
  target = aws_sqs_queue.queues["orders"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:orders" }
}
override_resource {
  target = aws_sqs_queue.queues["refunds"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:refunds" }
}
override_resource {
  target = aws_sqs_queue.queues["receipts"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:receipts" }
}
override_resource {
  target = aws_sqs_queue.queues["paid"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:paid" }
}
override_resource {
  target = aws_sqs_queue.dead_letters["orders-dead"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:orders-dead" }
}
override_resource {
  target = aws_sqs_queue.dead_letters["refunds-dead"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:refunds-dead" }
}
override_resource {
  target = aws_sqs_queue.dead_letters["receipts-dead"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:receipts-dead" }
}
override_resource {
  target = aws_sqs_queue.dead_letters["paid-dead"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:paid-dead" }
}
override_resource {
  target = aws_sqs_queue.dead_letters["unpublished"]
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:unpublished" }
}
override_resource {
  target = aws_iam_role.functions["order"]
  values = { arn = "arn:aws:iam::123456789012:role/order" }
}
override_resource {
  target = aws_iam_role.functions["refund"]
  values = { arn = "arn:aws:iam::123456789012:role/refund" }
}
override_resource {
  target = aws_iam_role.functions["webhook"]
  values = { arn = "arn:aws:iam::123456789012:role/webhook" }
}
override_resource {
  target = aws_iam_role.functions["reconcile"]
  values = { arn = "arn:aws:iam::123456789012:role/reconcile" }
}
override_resource {
  target = aws_iam_role.functions["publish"]
  values = { arn = "arn:aws:iam::123456789012:role/publish" }
}
override_resource {
  target = aws_iam_role.functions["intake"]
  values = { arn = "arn:aws:iam::123456789012:role/intake" }
}
override_resource {
  target = aws_iam_role.functions["receipt"]
  values = { arn = "arn:aws:iam::123456789012:role/receipt" }
}
override_resource {
  target = aws_lambda_alias.live["order"]
  values = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:order:live" }
}
override_resource {
  target = aws_lambda_alias.live["refund"]
  values = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:refund:live" }
}
override_resource {
  target = aws_lambda_alias.live["receipt"]
  values = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:receipt:live" }
}
override_resource {
  target = aws_lambda_alias.live["publish"]
  values = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:publish:live" }
}
override_resource {
  target = aws_lambda_alias.live["reconcile"]
  values = { arn = "arn:aws:lambda:eu-west-1:123456789012:function:reconcile:live" }
}
override_resource {
  target = aws_cloudwatch_event_rule.receipts["orders"]
  values = { arn = "arn:aws:events:eu-west-1:123456789012:rule/receipts-orders" }
}
override_resource {
  target = aws_cloudwatch_event_rule.receipts["mail"]
  values = { arn = "arn:aws:events:eu-west-1:123456789012:rule/receipts-mail" }
}
