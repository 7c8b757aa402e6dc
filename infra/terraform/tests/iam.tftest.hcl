mock_provider "aws" {
  source = "./tests/mocks"
}

override_resource {
  target = aws_cloudwatch_log_group.functions
  values = { arn = "arn:aws:logs:eu-west-1:123456789012:log-group:group" }
}

override_resource {
  target = aws_sqs_queue.orders
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:orders" }
}

override_resource {
  target = aws_sqs_queue.dead_letters
  values = { arn = "arn:aws:sqs:eu-west-1:123456789012:dead" }
}

variables {
  producer_arns = ["arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace"]
}

run "the_role_allows_exact_actions_on_exact_arns" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_role_policy.order.policy).Statement :
      s.Sid => [sort(flatten([s.Action])), flatten([s.Resource])]
      }) == jsonencode({
      ReceiveOrders = [
        ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
        ["arn:aws:sqs:eu-west-1:123456789012:orders"],
      ]
      ParkMessages = [
        ["sqs:GetQueueAttributes", "sqs:SendMessage"],
        ["arn:aws:sqs:eu-west-1:123456789012:dead"],
      ]
      WriteOrders = [
        ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table"],
      ]
      ReadStripeKey = [
        ["secretsmanager:GetSecretValue"],
        ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"],
      ]
      WriteLogs = [
        ["logs:CreateLogStream", "logs:PutLogEvents"],
        ["${aws_cloudwatch_log_group.functions["order"].arn}:log-stream:*"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_role_policy.order.policy}"
  }
}

run "only_tracing_allows_actions_on_any_resource" {
  variables {
    tracing = true
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.order.policy).Statement :
      flatten([s.Action]) if contains(flatten([s.Resource]), "*")
      ] == [
      ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    ]
    error_message = "only X-Ray's actions, which support no resources, may have Resource *"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.webhook[0].policy).Statement :
      flatten([s.Action]) if contains(flatten([s.Resource]), "*")
      ] == [
      ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    ]
    error_message = "webhook: only X-Ray's actions, which support no resources, may have Resource *"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.reconcile.policy).Statement :
      flatten([s.Action]) if contains(flatten([s.Resource]), "*")
      ] == [
      ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    ]
    error_message = "reconcile: only X-Ray's actions, which support no resources, may have Resource *"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.publish.policy).Statement :
      flatten([s.Action]) if contains(flatten([s.Resource]), "*")
      ] == [
      ["xray:PutTraceSegments", "xray:PutTelemetryRecords"]
    ]
    error_message = "publish: only X-Ray's actions, which support no resources, may have Resource *"
  }
}

run "only_lambda_can_assume_the_role" {
  assert {
    condition = alltrue([for role in aws_iam_role.functions :
      [for s in jsondecode(role.assume_role_policy).Statement : s.Principal]
      == [{ Service = "lambda.amazonaws.com" }]
    ])
    error_message = "assume_role_policy: must allow Lambda only"
  }
}

run "queues_deny_access_without_tls" {
  assert {
    condition = alltrue([for queue in [
      aws_sqs_queue_policy.orders, aws_sqs_queue_policy.dead_letters, aws_sqs_queue_policy.unpublished,
      ] :
      anytrue([for s in jsondecode(queue.policy).Statement :
        s.Effect == "Deny"
        && s.Principal.AWS == "arn:aws:iam::123456789012:root"
        && contains(flatten([s.Action]), "sqs:SendMessage")
        && contains(flatten([s.Action]), "sqs:ReceiveMessage")
        && try(s.Condition.Bool["aws:SecureTransport"], "") == "false"
      ])
    ])
    error_message = "queue policy: must deny access without TLS"
  }

  assert {
    condition = alltrue([for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      try(s.Condition.Bool["aws:SecureTransport"], "") == "true" if s.Effect == "Allow"
    ])
    error_message = "queue policy: a producer may send without TLS"
  }

  assert {
    condition = alltrue(flatten([
      for queue in [aws_sqs_queue_policy.orders, aws_sqs_queue_policy.dead_letters] :
      [for s in jsondecode(queue.policy).Statement : length(flatten([s.Action])) <= 7]
    ]))
    error_message = "SQS rejects a statement with more than seven actions"
  }
}

run "only_listed_producers_can_send_orders" {
  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Principal.AWS if s.Effect == "Allow"
      ] == [
      ["arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace"]
    ]
    error_message = "queue policy: allows principals other than producer_arns"
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Condition.ArnNotEquals["aws:PrincipalArn"] if s.Sid == "DenyOtherSenders" && s.Effect == "Deny"
      ] == [
      ["arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace"]
    ]
    error_message = "queue policy: other principals of this account may send"
  }
}

run "without_producers_the_queue_policy_allows_nobody" {
  variables {
    producer_arns = []
  }

  assert {
    condition     = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement : s.Effect] == ["Deny"]
    error_message = "queue policy: must only deny while no producer is listed"
  }
}

run "listed_rules_and_topics_can_send_orders" {
  variables {
    producer_rule_arns  = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
    producer_topic_arns = ["arn:aws:sns:eu-west-1:210987654321:orders"]
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      [s.Principal.Service, s.Action, s.Condition.ArnEquals["aws:SourceArn"]]
      if can(s.Principal.Service) && s.Effect == "Allow"
      ]) == jsonencode([
      ["events.amazonaws.com", "sqs:SendMessage", ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]],
      ["sns.amazonaws.com", "sqs:SendMessage", ["arn:aws:sns:eu-west-1:210987654321:orders"]],
    ])
    error_message = "must allow exactly the listed rule and topic: got ${aws_sqs_queue_policy.orders.policy}"
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Condition.BoolIfExists["aws:SecureTransport"] if can(s.Principal.Service)
    ] == ["true", "true"]
    error_message = "queue policy: a service may send without TLS"
  }
}

run "no_denial_applies_to_aws_services" {
  variables {
    producer_rule_arns  = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
    producer_topic_arns = ["arn:aws:sns:eu-west-1:210987654321:orders"]
  }

  assert {
    condition = alltrue([for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Principal == { AWS = "arn:aws:iam::123456789012:root" } if s.Effect == "Deny"
    ])
    error_message = "queue policy: a denial must name this account's principals"
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Condition if s.Sid == "DenyOtherSenders"
      ] == [{
        ArnNotEquals = {
          "aws:PrincipalArn" = [
            "arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace",
          ]
        }
        Bool = { "aws:PrincipalIsAWSService" = "false" }
    }]
    error_message = "DenyOtherSenders: must exclude AWS services, or EventBridge and SNS cannot send"
  }
}

run "with_only_a_rule_listed_nobody_else_can_send" {
  variables {
    producer_arns      = []
    producer_rule_arns = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.orders.policy).Statement :
      s.Condition if s.Sid == "DenyOtherSenders"
      ] == [
      { Bool = { "aws:PrincipalIsAWSService" = "false" } }
    ]
    error_message = "DenyOtherSenders: other principals of this account may send"
  }
}

run "only_the_function_can_send_dead_letters" {
  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.dead_letters.policy).Statement :
      s.Condition.ArnNotEquals["aws:PrincipalArn"] if s.Action == "sqs:SendMessage" && s.Effect == "Deny"
    ] == [aws_iam_role.functions["order"].arn]
    error_message = "queue policy: others than the function may send dead letters"
  }
}

# From here on the state has keys, which pins.tf keeps.
run "no_policy_has_a_wildcard" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    create_example_subscriber = true
    kms_key_arn               = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = alltrue([for policy in concat(
      [aws_iam_role_policy.order.policy, aws_iam_role_policy.webhook[0].policy],
      [aws_iam_role_policy.reconcile.policy, aws_iam_role_policy.reconcile_schedule.policy],
      [aws_iam_role_policy.publish.policy, aws_sqs_queue_policy.unpublished.policy],
      [for queue in aws_sqs_queue_policy.paid : queue.policy],
      [for keys in aws_iam_role_policy.keys : keys.policy],
      [aws_sqs_queue_policy.orders.policy, aws_sqs_queue_policy.dead_letters.policy],
      [for role in aws_iam_role.functions : role.assume_role_policy],
      [aws_iam_role.reconcile_schedule.assume_role_policy],
    ) : !can(regex("[*?]", replace(policy, ":log-stream:*\"", "\"")))])
    error_message = "a policy has a wildcard other than for log streams"
  }

  assert {
    condition = alltrue(flatten([for policy in [
      aws_iam_role_policy.order.policy, aws_iam_role_policy.keys["order"].policy,
      aws_iam_role_policy.webhook[0].policy, aws_iam_role_policy.keys["webhook"].policy,
      aws_iam_role_policy.reconcile.policy, aws_iam_role_policy.keys["reconcile"].policy,
      aws_iam_role_policy.reconcile_schedule.policy,
      aws_iam_role_policy.publish.policy, aws_iam_role_policy.keys["publish"].policy,
      aws_sqs_queue_policy.orders.policy, aws_sqs_queue_policy.dead_letters.policy,
      aws_sqs_queue_policy.unpublished.policy,
      aws_sqs_queue_policy.paid["queue"].policy, aws_sqs_queue_policy.paid["dead_letters"].policy,
      ] : [for s in jsondecode(policy).Statement :
      [for action in flatten([s.Action]) : can(regex("^[a-z]+:[A-Z][A-Za-z]+$", action))]
      ]
    ]))
    error_message = "a statement does not name its actions"
  }

  assert {
    condition = alltrue(flatten([for policy in [
      aws_iam_role_policy.order.policy, aws_iam_role_policy.keys["order"].policy,
      aws_iam_role_policy.webhook[0].policy, aws_iam_role_policy.keys["webhook"].policy,
      aws_iam_role_policy.reconcile.policy, aws_iam_role_policy.keys["reconcile"].policy,
      aws_iam_role_policy.reconcile_schedule.policy,
      aws_iam_role_policy.publish.policy, aws_iam_role_policy.keys["publish"].policy,
      aws_sqs_queue_policy.orders.policy, aws_sqs_queue_policy.dead_letters.policy,
      aws_sqs_queue_policy.unpublished.policy,
      aws_sqs_queue_policy.paid["queue"].policy, aws_sqs_queue_policy.paid["dead_letters"].policy,
      ] : [for s in jsondecode(policy).Statement :
      [for arn in flatten([s.Resource]) : startswith(arn, "arn:aws:")]
      ]
    ]))
    error_message = "a statement does not name its resource"
  }

  assert {
    condition = alltrue(flatten([
      for queue in [
        aws_sqs_queue_policy.orders, aws_sqs_queue_policy.dead_letters, aws_sqs_queue_policy.unpublished,
      ] :
      [for s in jsondecode(queue.policy).Statement : [for arn in flatten([s.Principal.AWS]) :
        can(regex("^arn:aws:iam::[0-9]{12}:(root$|role/|user/)", arn))
      ]]
    ]))
    error_message = "a queue policy does not name its principals"
  }

  assert {
    condition = jsonencode({ for name, keys in aws_iam_role_policy.keys : name =>
      [for s in jsondecode(keys.policy).Statement : s.Condition.StringEquals["kms:ViaService"]]
      }) == jsonencode({
      order = [[
        "sqs.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com",
        "secretsmanager.eu-west-1.amazonaws.com",
      ]]
      webhook   = [["dynamodb.eu-west-1.amazonaws.com", "secretsmanager.eu-west-1.amazonaws.com"]]
      reconcile = [["dynamodb.eu-west-1.amazonaws.com", "secretsmanager.eu-west-1.amazonaws.com"]]
      publish   = [["dynamodb.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com"]]
    })
    error_message = "kms:ViaService: must be the services that the function uses"
  }
}

run "without_a_kms_key_the_role_may_use_none" {
  command = plan

  variables {
    kms_key_arn = null
  }

  plan_options {
    replace = [terraform_data.kms_keys]
  }

  assert {
    condition     = length(aws_iam_role_policy.keys) == 0
    error_message = "role: may use a key that encrypts nothing"
  }
}

run "the_role_may_use_previous_kms_keys" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn           = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }

  assert {
    condition = alltrue([for name in ["order", "webhook", "reconcile", "publish"] :
      [for s in jsondecode(aws_iam_role_policy.keys[name].policy).Statement : s.Resource] == [[
        "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
        "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
      ]]
    ])
    error_message = "role: must keep the previous key, or older messages cannot be received"
  }
}
