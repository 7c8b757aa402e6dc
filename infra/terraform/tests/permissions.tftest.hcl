# Who may do what: roles, operators and queues. docs/reference/iam.md explains each statement.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  create_intake             = true
  create_receipts           = true
  receipt_from              = "receipts@shop.invalid"
  receipt_configuration_set = "shop-receipts"
  stock_tracking            = true
  create_example_subscriber = true
  create_operator_policies  = true
}

run "each_role_allows_exact_actions_on_exact_arns" {
  assert {
    condition = jsonencode({ for name, role in aws_iam_role_policy.functions : name => {
      for s in jsondecode(role.policy).Statement :
      s.Sid => "${join(" ", sort(flatten([s.Action])))} on ${join(" ", flatten([s.Resource]))}"
      if s.Effect == "Allow" && !contains(["WriteLogs", "ReadStripeKey", "MoveStock"], s.Sid)
      } }) == jsonencode({
      order = {
        ReceiveOrders = join(" ", [
          "sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage",
          "on ${aws_sqs_queue.queues["orders"].arn}",
        ])
        ParkMessages = "sqs:GetQueueAttributes sqs:SendMessage on ${aws_sqs_queue.dead_letters["orders-dead"].arn}"
        WriteOrders  = "dynamodb:PutItem dynamodb:Query dynamodb:UpdateItem on ${aws_dynamodb_table.orders.arn}"
        # Without it, a declined order could not be canceled, and its stock would stay reserved.
        LoadDeclinedOrders = "dynamodb:Query on ${aws_dynamodb_table.orders.arn}"
      }
      refund = { # it alone may read refunds that it writes, and no events
        ReceiveRefunds = join(" ", [
          "sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage",
          "on ${aws_sqs_queue.queues["refunds"].arn}",
        ])
        ParkRefunds  = "sqs:GetQueueAttributes sqs:SendMessage on ${aws_sqs_queue.dead_letters["refunds-dead"].arn}"
        WriteRefunds = "dynamodb:GetItem dynamodb:PutItem dynamodb:UpdateItem on ${aws_dynamodb_table.orders.arn}"
      }
      webhook = {
        LoadOrders        = "dynamodb:GetItem dynamodb:Query on ${aws_dynamodb_table.orders.arn}"
        SettleOrders      = "dynamodb:PutItem dynamodb:UpdateItem on ${aws_dynamodb_table.orders.arn}"
        ReadWebhookSecret = "secretsmanager:GetSecretValue on ${aws_secretsmanager_secret.webhook[0].arn}"
      }
      reconcile = {
        FindAndLoadWaitingOrders = join(" ", [
          "dynamodb:Query on", aws_dynamodb_table.orders.arn, "${aws_dynamodb_table.orders.arn}/index/open",
        ])
        LoadRefunds         = "dynamodb:GetItem on ${aws_dynamodb_table.orders.arn}"
        SettleWaitingOrders = "dynamodb:PutItem dynamodb:UpdateItem on ${aws_dynamodb_table.orders.arn}"
      }
      publish = { # no access to the table or to Stripe
        ReadStream = join(" ", [
          "dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams",
          "on ${aws_dynamodb_table.orders.stream_arn}",
        ])
        PublishEvents     = "events:PutEvents on ${aws_cloudwatch_event_bus.orders.arn}"
        ReportUnpublished = "sqs:SendMessage on ${aws_sqs_queue.dead_letters["unpublished"].arn}"
      }
      intake = {
        FindRegisteredOrders = "dynamodb:Query on ${aws_dynamodb_table.orders.arn}"
        RegisterOrders       = "dynamodb:PutItem on ${aws_dynamodb_table.orders.arn}"
        MarkSentOrders       = "dynamodb:UpdateItem on ${aws_dynamodb_table.orders.arn}"
        SendRegisteredOrders = "sqs:SendMessage on ${aws_sqs_queue.queues["orders"].arn}"
      }
      receipt = {
        ReceiveReceiptEvents = join(" ", [
          "sqs:ChangeMessageVisibility sqs:DeleteMessage sqs:GetQueueAttributes sqs:ReceiveMessage",
          "on ${aws_sqs_queue.queues["receipts"].arn}",
        ])
        ParkReceiptEvents = join(" ", [
          "sqs:GetQueueAttributes sqs:SendMessage on", aws_sqs_queue.dead_letters["receipts-dead"].arn,
        ])
        WriteReceipts = "dynamodb:GetItem dynamodb:PutItem on ${aws_dynamodb_table.receipts[0].arn}"
        SendReceipts = join(" ", [
          "ses:SendEmail on arn:aws:ses:eu-west-1:123456789012:identity/shop.invalid",
          "arn:aws:ses:eu-west-1:123456789012:configuration-set/shop-receipts",
        ])
      }
    })
    error_message = "explain changes in docs/reference/iam.md: a role's statements differ from this list"
  }

  assert {
    condition = { for name, role in aws_iam_role_policy.functions : name => one([
      for s in jsondecode(role.policy).Statement : "${join(" ", s.Action)} on ${s.Resource}" if s.Sid == "WriteLogs"
      ]) } == { for name in ["order", "refund", "webhook", "reconcile", "publish", "intake", "receipt"] : name => (
      "logs:CreateLogStream logs:PutLogEvents on ${aws_cloudwatch_log_group.functions[name].arn}:log-stream:*"
    ) }
    error_message = "WriteLogs: must be for the function's own log group"
  }

  assert {
    condition = { for name, role in aws_iam_role_policy.functions : name => [
      for s in jsondecode(role.policy).Statement : "${s.Action} on ${s.Resource}" if s.Sid == "ReadStripeKey"
      ] } == { for name in ["order", "refund", "webhook", "reconcile", "publish", "intake", "receipt"] : name => [
      for secret in [aws_secretsmanager_secret.stripe] : "secretsmanager:GetSecretValue on ${secret.arn}"
      if !contains(["publish", "intake"], name)
    ] }
    error_message = "ReadStripeKey: must be of the functions that call Stripe, publish and intake do not"
  }

  # Whoever writes orders moves their stock.
  assert {
    condition = { for name, policy in merge(
      { for name, role in aws_iam_role_policy.functions : name => role.policy },
      { operator-read = aws_iam_policy.operator_read[0].policy },
      { operator-repair = aws_iam_policy.operator_repair[0].policy },
      ) : name => [for s in jsondecode(policy).Statement : "${s.Sid} ${s.Action}"
      if strcontains(jsonencode(s.Resource), aws_dynamodb_table.stock[0].arn)] } == {
      order           = ["MoveStock dynamodb:UpdateItem"]
      refund          = []
      webhook         = ["MoveStock dynamodb:UpdateItem"]
      reconcile       = ["MoveStock dynamodb:UpdateItem"]
      publish         = []
      intake          = []
      receipt         = []
      operator-read   = ["ReadStock dynamodb:GetItem"]
      operator-repair = ["MoveStock dynamodb:UpdateItem", "ReadStock dynamodb:GetItem"]
    }
    error_message = "policies: must allow UpdateItem on the stock table, and nothing else there"
  }

  assert {
    condition = jsonencode({ for s in flatten([
      for role in aws_iam_role_policy.functions : jsondecode(role.policy).Statement
      ]) : s.Sid => s.Condition if can(s.Condition) }) == jsonencode({
      RegisterOrders = { "ForAllValues:StringEquals" = { "dynamodb:Attributes" = [
        "orderId", "sk", "fingerprint", "amount", "currency", "caller", "createdAt", "openShard", "dueAt",
      ] } }
      MarkSentOrders = { "ForAllValues:StringEquals" = { "dynamodb:Attributes" = [
        "orderId", "sk", "openShard", "dueAt",
      ] } }
      SendReceipts = { StringEquals = { "ses:FromAddress" = "receipts@shop.invalid" } }
    })
    error_message = "intake could write an order, or receipt send as another address of the identity"
  }

  assert {
    condition = { for name, policy in aws_iam_role_policy.functions :
      name => [policy.role, aws_iam_role.functions[name].name]
      } == { for name in ["order", "refund", "webhook", "reconcile", "publish", "intake", "receipt"] :
      name => [aws_iam_role.functions[name].id, "orderonce-dev-${name}"]
    }
    error_message = "roles: each function must have its own, with its policy"
  }

  assert {
    condition = alltrue([for name, function in aws_lambda_function.functions :
      function.role == aws_iam_role.functions[name].arn
    ])
    error_message = "role: a function has the role of another"
  }

  assert {
    condition = alltrue([for role in aws_iam_role.functions :
      [for s in jsondecode(role.assume_role_policy).Statement : s.Principal]
      == [{ Service = "lambda.amazonaws.com" }]
    ])
    error_message = "assume_role_policy: must allow Lambda only"
  }
}

run "only_schedules_of_this_account_invoke_reconcile" {
  assert {
    condition = jsonencode(jsondecode(aws_iam_role.reconcile_schedule.assume_role_policy).Statement) == (
      jsonencode([{
        Sid       = "AssumedByScheduler"
        Effect    = "Allow"
        Principal = { Service = "scheduler.amazonaws.com" }
        Action    = "sts:AssumeRole"
        Condition = { StringEquals = { "aws:SourceAccount" = "123456789012" } }
      }])
    )
    error_message = "assume_role_policy: got ${aws_iam_role.reconcile_schedule.assume_role_policy}"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_role_policy.reconcile_schedule.policy).Statement :
      [s.Effect, s.Action, s.Resource]
    ]) == jsonencode([["Allow", "lambda:InvokeFunction", aws_lambda_alias.live["reconcile"].arn]])
    error_message = "policy: got ${aws_iam_role_policy.reconcile_schedule.policy}"
  }

  assert {
    condition = (
      aws_iam_role_policy.reconcile_schedule.role == "schedule"
      && aws_iam_role.reconcile_schedule.name == "orderonce-dev-reconcile-schedule"
    )
    error_message = "role: the schedule must have its own, with this policy"
  }
}

run "only_tracing_allows_actions_on_any_resource" {
  variables {
    tracing = true
  }

  assert {
    condition = alltrue([for role in aws_iam_role_policy.functions :
      [for s in jsondecode(role.policy).Statement : s.Action if contains(flatten([s.Resource]), "*")]
      == [["xray:PutTraceSegments", "xray:PutTelemetryRecords"]]
    ])
    error_message = "only X-Ray's actions, which support no resources, may have Resource *"
  }

  assert {
    condition     = alltrue([for f in aws_lambda_function.functions : f.tracing_config[0].mode == "Active"])
    error_message = "tracing: ignored"
  }
}

run "every_role_gets_the_permissions_boundary" {
  command = plan

  variables {
    permissions_boundary = "arn:aws:iam::123456789012:policy/bounds"
  }

  assert {
    condition = alltrue([
      for role in concat(values(aws_iam_role.functions), [aws_iam_role.reconcile_schedule]) :
      role.permissions_boundary == var.permissions_boundary
    ])
    error_message = "permissions_boundary: ignored"
  }
}

run "the_sender_of_receipts_can_have_a_name" {
  variables {
    receipt_from = "The Shop <receipts@mail.shop.invalid>"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.functions["receipt"].policy).Statement :
      [s.Resource[0], s.Condition.StringEquals["ses:FromAddress"]] if s.Sid == "SendReceipts"
    ] == [["arn:aws:ses:eu-west-1:123456789012:identity/mail.shop.invalid", "receipts@mail.shop.invalid"]]
    error_message = "SendReceipts: must name the domain and the address, without the name"
  }

  assert {
    condition = (
      aws_lambda_function.functions["receipt"].environment[0].variables.RECEIPT_FROM
      == "The Shop <receipts@mail.shop.invalid>"
    )
    error_message = "RECEIPT_FROM: must be receipt_from as it is"
  }
}

run "the_identity_of_receipts_can_be_an_address" {
  command = plan

  variables {
    receipt_identity = "receipts@shop.invalid"
  }

  assert {
    condition = (
      local.receipt_mail_arns[0] == "arn:aws:ses:eu-west-1:123456789012:identity/receipts@shop.invalid"
    )
    error_message = "receipt_identity: ignored"
  }
}

run "operators_may_do_exactly_this" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      s.Sid => [s.Effect, "${join(" ", sort(flatten([s.Action])))} on ${join(" ", flatten([s.Resource]))}"]
      }) == jsonencode({
      ReadOrders = ["Allow", join(" ", [
        "dynamodb:DescribeTable dynamodb:GetItem dynamodb:Query dynamodb:Scan on",
        aws_dynamodb_table.orders.arn,
      ])]
      FindWaitingOrders = ["Allow", "dynamodb:Query on ${aws_dynamodb_table.orders.arn}/index/open"]
      CountMessages = ["Allow", join(" ", [
        "sqs:GetQueueAttributes on", aws_sqs_queue.queues["orders"].arn, aws_sqs_queue.queues["refunds"].arn,
      ])]
      ReadDeadLetters = ["Allow", join(" ", [
        "sqs:ChangeMessageVisibility sqs:GetQueueAttributes sqs:ReceiveMessage on",
        aws_sqs_queue.dead_letters["orders-dead"].arn, aws_sqs_queue.dead_letters["refunds-dead"].arn,
      ])]
      ReadStock = ["Allow", "dynamodb:GetItem on ${aws_dynamodb_table.stock[0].arn}"]
      ReadReceipts = ["Allow", join(" ", [
        "dynamodb:GetItem dynamodb:Query on",
        aws_dynamodb_table.receipts[0].arn, "${aws_dynamodb_table.receipts[0].arn}/index/doubtful",
      ])]
    })
    error_message = "operator-read: may change neither rows nor queues: got ${aws_iam_policy.operator_read[0].policy}"
  }

  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      s.Sid => [s.Effect, "${join(" ", sort(flatten([s.Action])))} on ${join(" ", flatten([s.Resource]))}"]
      if !contains(jsondecode(aws_iam_policy.operator_read[0].policy).Statement, s)
      }) == jsonencode({
      RepairOrders = ["Allow", "dynamodb:PutItem dynamodb:UpdateItem on ${aws_dynamodb_table.orders.arn}"]
      SendMessages = ["Allow", join(" ", [
        "sqs:SendMessage on", aws_sqs_queue.queues["orders"].arn, aws_sqs_queue.queues["refunds"].arn,
      ])]
      DeleteDeadLetters = ["Allow", join(" ", [
        "sqs:DeleteMessage on", aws_sqs_queue.dead_letters["orders-dead"].arn,
        aws_sqs_queue.dead_letters["refunds-dead"].arn,
      ])]
      RepublishEvents = ["Allow", "events:PutEvents on ${aws_cloudwatch_event_bus.orders.arn}"]
      MoveStock       = ["Allow", "dynamodb:UpdateItem on ${aws_dynamodb_table.stock[0].arn}"]
      ResolveReceipts = ["Allow", "dynamodb:PutItem on ${aws_dynamodb_table.receipts[0].arn}"]
    })
    error_message = "operator-repair: differs from this list: got ${aws_iam_policy.operator_repair[0].policy}"
  }

  assert {
    condition = alltrue([for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      contains(jsondecode(aws_iam_policy.operator_repair[0].policy).Statement, s)
    ])
    error_message = "operator-repair: must include operator-read, because repairs read first"
  }

  assert {
    condition = [
      aws_iam_policy.operator_read[0].name, output.operator_read_policy_arn,
      aws_iam_policy.operator_repair[0].name, output.operator_repair_policy_arn,
      ] == [
      "orderonce-dev-operator-read", "arn:aws:iam::123456789012:policy/read",
      "orderonce-dev-operator-repair", "arn:aws:iam::123456789012:policy/repair",
    ]
    error_message = "names: a permission set names a policy, so they must not change; outputs: must be the ARNs"
  }
}

run "every_queue_denies_access_without_tls" {
  assert {
    condition = alltrue([for policy in aws_sqs_queue_policy.queues :
      [for s in jsondecode(policy.policy).Statement : [s.Effect, s.Principal, s.Condition]
        if contains(flatten([s.Action]), "sqs:ReceiveMessage") && contains(flatten([s.Action]), "sqs:SendMessage")
      ] == [["Deny", { AWS = "arn:aws:iam::123456789012:root" }, { Bool = { "aws:SecureTransport" = "false" } }]]
    ])
    error_message = "queue policy: must deny access without TLS"
  }

  assert {
    condition = alltrue(flatten([for policy in aws_sqs_queue_policy.queues :
      [for s in jsondecode(policy.policy).Statement : length(flatten([s.Action])) <= 7]
    ]))
    error_message = "SQS rejects a statement with more than seven actions"
  }

  assert {
    condition = { for name, policy in aws_sqs_queue_policy.queues : name => policy.queue_url } == merge(
      { for name, queue in aws_sqs_queue.queues : name => queue.url },
      { for name, queue in aws_sqs_queue.dead_letters : name => queue.url },
    )
    error_message = "queue policy: a queue has none, or that of another"
  }

  assert {
    condition = alltrue(flatten([for name, policy in aws_sqs_queue_policy.queues : [
      for s in jsondecode(policy.policy).Statement :
      s.Resource == try(aws_sqs_queue.queues[name].arn, aws_sqs_queue.dead_letters[name].arn)
    ]]))
    error_message = "queue policy: names another queue"
  }
}

run "only_rules_send_events_and_only_its_function_sends_dead_letters" {
  assert {
    condition = jsonencode({ for name, policy in aws_sqs_queue_policy.queues : name => [
      for s in jsondecode(policy.policy).Statement : [s.Effect, s.Action, s.Principal, s.Condition]
      if s.Sid != "DenyWithoutTLS"
      ] }) == jsonencode(merge(
      { orders = [], refunds = [] }, # while no producer is listed
      { for name, function in { orders-dead = "order", refunds-dead = "refund", unpublished = "publish" } : name => [[
        "Deny", "sqs:SendMessage", { AWS = "arn:aws:iam::123456789012:root" },
        { ArnNotEquals = { "aws:PrincipalArn" = aws_iam_role.functions[function].arn } },
      ]] },
      { for name in ["paid", "paid-dead", "receipts", "receipts-dead"] : name => [[
        "Allow", "sqs:SendMessage", { Service = "events.amazonaws.com" },
        {
          ArnEquals = { "aws:SourceArn" = startswith(name, "paid") ? [aws_cloudwatch_event_rule.paid[0].arn] : [
            aws_cloudwatch_event_rule.receipts["mail"].arn, aws_cloudwatch_event_rule.receipts["orders"].arn,
          ] }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        },
      ]] },
    ))
    error_message = "queue policies: another principal may send"
  }
}

run "only_listed_producers_rules_and_topics_can_send_orders" {
  variables {
    producer_arns       = ["arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace"]
    producer_rule_arns  = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
    producer_topic_arns = ["arn:aws:sns:eu-west-1:210987654321:orders"]
  }

  # The intake function is a producer too, or every order by HTTP would get a 503. The denial
  # excludes AWS services, or EventBridge and SNS could not send.
  assert {
    condition = jsonencode([for s in jsondecode(aws_sqs_queue_policy.queues["orders"].policy).Statement :
      [s.Effect, s.Action, s.Principal, s.Condition] if s.Sid != "DenyWithoutTLS"
      ]) == jsonencode([
      [
        "Allow", "sqs:SendMessage",
        { AWS = [
          "arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace",
          aws_iam_role.functions["intake"].arn,
        ] },
        { Bool = { "aws:SecureTransport" = "true" } },
      ],
      [
        "Allow", "sqs:SendMessage", { Service = "events.amazonaws.com" },
        {
          ArnEquals    = { "aws:SourceArn" = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"] }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        },
      ],
      [
        "Allow", "sqs:SendMessage", { Service = "sns.amazonaws.com" },
        {
          ArnEquals    = { "aws:SourceArn" = ["arn:aws:sns:eu-west-1:210987654321:orders"] }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        },
      ],
      [
        "Deny", "sqs:SendMessage", { AWS = "arn:aws:iam::123456789012:root" },
        {
          ArnNotEquals = { "aws:PrincipalArn" = [
            "arn:aws:iam::123456789012:role/shop", "arn:aws:iam::210987654321:role/marketplace",
            aws_iam_role.functions["intake"].arn,
          ] }
          Bool = { "aws:PrincipalIsAWSService" = "false" }
        },
      ],
    ])
    error_message = "must allow exactly these: got ${aws_sqs_queue_policy.queues["orders"].policy}"
  }

  # Refunds come from the same producers, but never by HTTP.
  assert {
    condition = replace(aws_sqs_queue_policy.queues["refunds"].policy, aws_sqs_queue.queues["refunds"].arn, "queue") == (
      replace(replace(
        aws_sqs_queue_policy.queues["orders"].policy, aws_sqs_queue.queues["orders"].arn, "queue",
      ), ",\"${aws_iam_role.functions["intake"].arn}\"", "")
    )
    error_message = "must be the policy of orders without intake: got ${aws_sqs_queue_policy.queues["refunds"].policy}"
  }
}

run "with_only_a_rule_listed_the_intake_function_may_send_too" {
  variables {
    producer_rule_arns = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.queues["orders"].policy).Statement :
      s.Condition.ArnNotEquals["aws:PrincipalArn"] if s.Sid == "DenyOtherSenders"
    ] == [[aws_iam_role.functions["intake"].arn]]
    error_message = "queue policy: the intake function may not send, so every order by HTTP gets a 503"
  }
}

run "with_only_a_rule_listed_and_no_intake_nobody_else_can_send" {
  variables {
    create_intake      = false
    producer_rule_arns = ["arn:aws:events:eu-west-1:123456789012:rule/shop/orders"]
  }

  assert {
    condition = [for s in jsondecode(aws_sqs_queue_policy.queues["orders"].policy).Statement :
      s.Condition if s.Sid == "DenyOtherSenders"
    ] == [{ Bool = { "aws:PrincipalIsAWSService" = "false" } }]
    error_message = "DenyOtherSenders: other principals of this account may send"
  }
}

run "callers_of_the_api_may_call_its_three_routes" {
  assert {
    condition = jsonencode([for s in jsondecode(output.intake_caller_policy).Statement :
      [s.Effect, s.Action, sort(s.Resource)]
      ]) == jsonencode([["Allow", "execute-api:Invoke", [
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/GET/orders/*",
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/POST/orders",
        "arn:aws:execute-api:eu-west-1:123456789012:orders/$default/PUT/orders/*",
    ]]])
    error_message = "intake_caller_policy: got ${coalesce(output.intake_caller_policy, "null")}"
  }
}

# From here on the state has keys, which pins.tf keeps.
run "roles_and_operators_may_use_every_key_through_their_services_only" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn           = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001"
    previous_kms_key_arns = ["arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"]
  }

  assert {
    condition = jsonencode({ for name, keys in aws_iam_role_policy.keys : name => [keys.role, [
      for s in jsondecode(keys.policy).Statement : [s.Effect, s.Action, s.Resource, s.Condition]
      ]] }) == jsonencode({ for name, services in {
      order     = ["sqs", "dynamodb", "secretsmanager"]
      refund    = ["sqs", "dynamodb", "secretsmanager"]
      webhook   = ["dynamodb", "secretsmanager"]
      reconcile = ["dynamodb", "secretsmanager"]
      publish   = ["dynamodb", "sqs"]
      intake    = ["dynamodb", "sqs"]
      receipt   = ["dynamodb", "secretsmanager"]
      } : name => [aws_iam_role.functions[name].id, [[
        "Allow", ["kms:Decrypt", "kms:GenerateDataKey"],
        [ # without the previous key, older messages could not be received
          "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
          "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
        ],
        { StringEquals = { "kms:ViaService" = [for service in services : "${service}.eu-west-1.amazonaws.com"] } },
    ]]] })
    error_message = "keys: must be every key, through the services that the function uses"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      [s.Sid, s.Effect, s.Action, s.Resource, s.Condition] if can(s.Condition)
      ]) == jsonencode([
      [
        "DecryptOrders", "Allow", "kms:Decrypt",
        [
          "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
          "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
        ],
        { StringEquals = {
          "kms:ViaService" = ["dynamodb.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com"]
        } },
      ],
      [
        "EncryptOrders", "Allow", "kms:GenerateDataKey",
        "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
        { StringEquals = { "kms:ViaService" = "sqs.eu-west-1.amazonaws.com" } },
      ],
    ])
    error_message = "operators: must decrypt with every key and encrypt with the current one"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement : s.Sid if can(s.Condition)
    ] == ["DecryptOrders"]
    error_message = "operator-read: must decrypt, and encrypt nothing"
  }

  # All policies there are, with every part on and with keys.
  assert {
    condition = alltrue(flatten([for policy in concat(
      values(aws_iam_role_policy.functions)[*].policy, values(aws_iam_role_policy.keys)[*].policy,
      values(aws_sqs_queue_policy.queues)[*].policy, [aws_iam_role_policy.reconcile_schedule.policy],
      aws_iam_policy.operator_read[*].policy, aws_iam_policy.operator_repair[*].policy,
      ) : [for s in jsondecode(policy).Statement : concat(
        [for action in flatten([s.Action]) : can(regex("^[a-z0-9]+:[A-Z][A-Za-z]+$", action))],
        [for arn in flatten([s.Resource]) : startswith(arn, "arn:aws:") || endswith(arn, ":log-stream:*")],
        [!can(regex("[*?]", replace(jsonencode(s), ":log-stream:*\"", "\"")))],
    )]]))
    error_message = "a statement has a wildcard other than for log streams, or does not name its actions and ARNs"
  }

  assert {
    condition = !can(regex("[*?]", join("", concat(
      values(aws_iam_role.functions)[*].assume_role_policy, [aws_iam_role.reconcile_schedule.assume_role_policy],
    ))))
    error_message = "assume_role_policy: has a wildcard"
  }

  assert {
    condition = alltrue(flatten([for policy in aws_sqs_queue_policy.queues : [
      for s in jsondecode(policy.policy).Statement : [for principal in flatten([try(s.Principal.AWS, [])]) :
        can(regex("^arn:aws:iam::[0-9]{12}:(root$|role/|user/)", principal))
      ]
    ]]))
    error_message = "a queue policy does not name its principals"
  }

  assert {
    condition = !strcontains(
      "${aws_iam_policy.operator_read[0].policy}${aws_iam_policy.operator_repair[0].policy}", "secretsmanager",
    )
    error_message = "operators: read a secret"
  }
}

run "without_a_current_key_operators_only_decrypt" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    previous_kms_key_arns = [
      "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000",
      "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000001",
    ]
  }

  assert {
    condition = [for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      s.Action if can(s.Condition)
    ] == ["kms:Decrypt"]
    error_message = "operator-repair: must still decrypt older messages, and encrypts with no key"
  }
}
